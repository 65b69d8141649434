#!/usr/bin/env python3
"""Holds the sources against the rooms of CMakeLists.txt.

1. A file includes headers of its own room and of the rooms that its room(...) line names, directly or through them. The
   line names no room that no file includes, so that it says what the room rests on.
2. A file of a room opens the room's namespace, harness::ROOM (base: harness), or one within it.

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
# Only this file may know all backends, so it may include each one.
EXCEPTIONS = {('src/backends/backends.cpp', 'cpu')}
# Folders of a room with a namespace of their own.
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


def main():
    directory, needs, named = rooms()
    edges, breaches = check_includes(directory, needs, named)
    breaches += check_namespaces(directory)
    for breach in breaches:
        print('rooms:', breach, file=sys.stderr)
    print(f'rooms: {len(directory)} rooms, {edges} includes between them, {len(breaches)} breaches')
    return 1 if breaches else 0


if __name__ == '__main__':
    sys.exit(main())
