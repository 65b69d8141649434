#!/usr/bin/env python3
"""Looks at the machine code of the kernels for what no GPU is needed to see: in kernels over rows and over consecutive
elements (maps.cuh), stores of 16 bytes where the elements of a thread fill them; in all kernels, registers that spill.

usage: scripts/check_machine_code.py OBJECT...      objects of nvcc, for one or more architectures each

Needs cuobjdump and nvdisasm, of the CUDA Toolkit or of the folder .deps/cuda-binaries (`scripts/setup.sh --dev`). Exit
status: 0 as it should be, 1 not, 2 nothing was looked at.
"""
import collections
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STORE = re.compile(r"\bSTG?\.E((?:\.[A-Z0-9]+)*)\s")
WIDTH = re.compile(r"\.(128|64|U?S?16|U?S?8)(?:\.|$)")
SPILL = re.compile(r"\b(?:STL|LDL)(?:\.|\s)")
# sincosf() of large angles reduces them by a table in local memory, on a path that is hardly ever taken. norm_reread,
# for rows that no registers hold, spills a register on sm_100.
MAY_USE_LOCAL_MEMORY = ("InitializeMap", "rope_row", "norm_reread")
STORES_OF_A_FLAT_TILE = 4  # map_pieces: as many accesses of a thread


def tools():
    path = os.pathsep.join([os.path.join(ROOT, ".deps", "cuda-binaries"), os.environ.get("PATH", ""),
                            os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin")])
    found = [shutil.which(name, path=path) for name in ("cuobjdump", "nvdisasm")]
    return found if all(found) else None, path


def kernels(cuobjdump, path, file):
    """{(architecture, name): Counter of "16", "8", "narrow" and "spill"} of one object."""
    listing = subprocess.run([cuobjdump, "--dump-sass", file], check=True, capture_output=True, text=True,
                             env={**os.environ, "PATH": path}).stdout
    found, architecture, at = {}, "", None
    for line in listing.splitlines():
        if line.startswith("arch = "):
            architecture = line[7:].strip()
        elif "Function :" in line:
            at = found.setdefault((architecture, line.split("Function :")[1].strip()), collections.Counter())
        elif at is not None:
            store = STORE.search(line)
            if store:
                width = WIDTH.search(store.group(1))
                at[{"128": "16", "64": "8"}.get(width.group(1) if width else "", "narrow")] += 1
            if SPILL.search(line):
                at["spill"] += 1
    return found


def demangled(names):
    out = subprocess.run(["c++filt"], input="\n".join(names), check=True, capture_output=True, text=True).stdout
    return dict(zip(names, out.splitlines()))


def problems_of(name, stores):
    kernel = re.match(r"(?:void )?harness::cuda::(map_rows|map_flat)<(.*)>\(", name)
    if kernel and kernel.group(1) == "map_rows":
        lanes = int(kernel.group(2).rsplit(",", 1)[1])
        if lanes > 1 and stores["narrow"]:
            yield f"{stores['narrow']} stores of 4 bytes or fewer, where {lanes} elements of a thread fill 16"
        if lanes > 1 and not stores["16"]:
            yield "no store of 16 bytes"
    if kernel and kernel.group(1) == "map_flat" and stores["16"] + stores["8"] < STORES_OF_A_FLAT_TILE:
        yield f"{stores['16'] + stores['8']} wide stores, where a whole tile has at least {STORES_OF_A_FLAT_TILE}"
    if stores["spill"] and not any(word in name for word in MAY_USE_LOCAL_MEMORY):
        yield f"{stores['spill']} accesses to local memory"


def main(files):
    found, path = tools()
    if not found:
        print("machine code: cuobjdump and nvdisasm were not found; `scripts/setup.sh --dev` fetches them", file=sys.stderr)
        return 2
    count, maps, architectures, wrong = 0, 0, set(), 0
    for file in files:
        of_file = kernels(found[0], path, file)
        names = demangled(sorted({name for _, name in of_file}))
        for (architecture, mangled), stores in of_file.items():
            name = names[mangled]
            count, maps = count + 1, maps + ("::map_rows<" in name or "::map_flat<" in name)
            architectures.add(architecture)
            for problem in problems_of(name, stores):
                wrong += 1
                print(f"{os.path.basename(file)}, {architecture}, {name.split('(harness')[0][:150]}: {problem}")
    if not maps:
        print("machine code: no kernel of maps.cuh was in these files", file=sys.stderr)
        return 2
    print(f"machine code: {count} kernels for {', '.join(sorted(architectures))}, {maps} of them maps: "
          f"{f'{wrong} problems' if wrong else 'stores are wide and nothing spills'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
