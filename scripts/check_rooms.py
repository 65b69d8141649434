#!/usr/bin/env python3
"""Holds the sources against the rooms of CMakeLists.txt.

1. A file includes headers of its own room and of the rooms that its room(...) line names, directly or through them. The
   line names no room that no file includes, so that it says what the room rests on.
2. A file of a room opens the room's namespace, harness::ROOM (base: harness), or one within it.
3. No name is defined twice in one namespace of one program: two classes of one name with external linkage are undefined
   behaviour that neither compiler nor linker reports.

Prints a line for each breach and exits with 1 if there is one. usage: scripts/check_rooms.py
"""
import collections
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
ROOM = re.compile(r'^\s*room\(\s*(\w+)\s+(\S+)((?:\s+[^)]*)?)\)', re.M)
INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.M)
NAMESPACE = re.compile(r'^(?:inline )?namespace\s*([\w:]*)\s*\{')
# clang-format leaves namespace members at the margin, so a definition begins there.
TYPE = re.compile(r'^(?:struct|class|union|enum(?: class| struct)?)\s+(?:alignas\([^)]*\)\s*)?(\w+)\b(?!::)[^;()]*\{')
CLOSE = re.compile(r'^\}.*// namespace')


# The one place that knows which backends there are.
EXCEPTIONS = {('src/backends/backends.cpp', 'cpu')}


# A folder of a room that has a namespace of its own.
NAMESPACES = {'workloads/gpt': ('harness::gpt', 'harness::workloads'), 'src/backend/cuda/kernels': ('harness::cuda',)}
OPENED = re.compile(r'^namespace (harness(?:::\w+)*) \{', re.M)


def rooms():
    text = (TOP / 'CMakeLists.txt').read_text()
    directory, needs = {}, {}
    for name, path, libraries in ROOM.findall(text):
        if name == 'name':
            continue
        directory[path] = name
        needs[name] = set(re.findall(r'harness_(\w+)', libraries)) - {'options'}
    named = {name: set(others) for name, others in needs.items()}
    for _ in needs:  # what a needed room may use, its users may
        for name in needs:
            needs[name] |= set().union(*(needs.get(other, set()) for other in needs[name]))
    return directory, needs, named


def room_of(path, directory):
    fitting = [d for d in directory if path.startswith(d + '/')]
    return directory[max(fitting, key=len)] if fitting else None


def sources(*folders):
    listed = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '--', *folders], cwd=TOP, check=True,
                            capture_output=True, text=True).stdout.split()
    wanted = ('.h', '.cpp', '.cu', '.cuh')
    return sorted(f for f in listed if f.endswith(wanted) and (TOP / f).exists())


def check_includes(directory, needs, named):
    edges, breaches = 0, []
    used = collections.defaultdict(set)
    for path in sources('src', 'workloads'):
        own = room_of(path, directory)
        if own is None:
            continue
        for header in INCLUDE.findall((TOP / path).read_text()):
            found = next((f for f in ('src/' + header, header) if (TOP / f).exists()), '')
            other = room_of(found, directory)
            if other is None or other == own:
                continue
            edges += 1
            used[own].add(other)
            if other not in needs[own] and (path, other) not in EXCEPTIONS:
                breaches.append(f'{path}: includes "{header}", but the room {own} may not use the room {other}')
    for name, others in named.items():
        for other in sorted(others - used[name]):
            breaches.append(f'CMakeLists.txt: the room {name} names the room {other}, but includes nothing of it')
    return edges, breaches


def check_namespaces(directory):
    breaches = []
    for path in sources('src', 'workloads'):
        room = room_of(path, directory)
        if room is None:
            continue
        own = ('harness',) if room == 'base' else NAMESPACES.get(str(pathlib.Path(path).parent), (f'harness::{room}',))
        for name in OPENED.findall((TOP / path).read_text()):
            within = room != 'base' and any(name.startswith(space + '::') for space in own)
            if name not in own and not within:
                breaches.append(f'{path}: opens the namespace {name}; expected {" or ".join(own)}')
    return breaches


def definitions(path):
    """Names of types with external linkage, with their namespace."""
    spaces = []
    for line in (TOP / path).read_text().splitlines():
        if match := NAMESPACE.match(line):
            if line.rstrip().endswith('{'):
                spaces.append(match.group(1))
        elif CLOSE.match(line):
            if spaces:
                spaces.pop()
        elif (match := TYPE.match(line)) and '' not in spaces:
            yield '::'.join(spaces + [match.group(1)])


def check_names():
    product = sources('src', 'workloads')
    groups = {'the product': product}
    for folder in sorted({str(pathlib.Path(f).parent) for f in sources('tests')}):
        groups[folder] = product + [f for f in sources(folder) if str(pathlib.Path(f).parent) == folder]
    breaches = []
    for program, files in groups.items():
        places = collections.defaultdict(set)
        for path in files:
            for name in definitions(path):
                places[name].add(path)
        for name, where in sorted(places.items()):
            if len(where) > 1 and not (program != 'the product' and where <= set(product)):
                breaches.append(f'{name} is defined in {len(where)} files of {program}: {", ".join(sorted(where))}')
    return breaches


def main():
    directory, needs, named = rooms()
    edges, breaches = check_includes(directory, needs, named)
    breaches += check_namespaces(directory) + check_names()
    for breach in breaches:
        print('rooms:', breach, file=sys.stderr)
    print(f'rooms: {len(directory)} rooms, {edges} includes between them, {len(breaches)} breaches')
    return 1 if breaches else 0


if __name__ == '__main__':
    sys.exit(main())
