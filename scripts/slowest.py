#!/usr/bin/env python3
"""Prints what took longest in one build folder: `scripts/slowest.py build/release compilations` (or `tests`).

Compilations and links come from Ninja's log, tests from the log of the last `ctest`: a test of GoogleTest by its own
time, any other by ctest's. Compilations that ccache served count with the little time that they took."""
import pathlib
import re
import sys


def compilations(log):
    seconds = {}  # a target that was built twice counts once, with its last time
    for line in log.read_text().splitlines()[1:]:
        start, end, _, target, _ = line.split("\t")
        seconds[target] = (int(end) - int(start)) / 1000
    return seconds


def tests(log):
    seconds = {}
    name, alone = None, True
    for line in log.read_text(errors="replace").splitlines():
        if found := re.match(r"\d+/\d+ Test: (.*)", line):
            name, alone = found[1], True
        elif found := re.match(r"\[\s+(?:OK|FAILED)\s+\] (\S+).* \((\d+) ms\)$", line):
            test = found[1].rstrip(",")
            program = name[: -len(test)] if name.endswith(test) else re.sub(r"[^/]*$", "", name)  # an entry or a shard
            seconds[program + test] = int(found[2]) / 1000
            alone = False
        elif (found := re.match(r"Test time =\s*([\d.]+) sec", line)) and alone:
            seconds[name] = float(found[1])
    return seconds


def main():
    folder, what = pathlib.Path(sys.argv[1]), sys.argv[2]
    log, read = {"compilations": (".ninja_log", compilations), "tests": ("Testing/Temporary/LastTest.log", tests)}[what]
    if not (folder / log).exists():
        return
    seconds = read(folder / log)
    print(f"--- the slowest of {len(seconds)} {what}, {sum(seconds.values()):.0f} s in all")
    for name in sorted(seconds, key=seconds.get, reverse=True)[:15]:
        print(f"{seconds[name]:8.1f} s  {name}")


main()
