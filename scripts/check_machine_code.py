#!/usr/bin/env python3
"""Looks at the machine code of the kernels for what no GPU is needed to see: in kernels over rows and over consecutive
elements (launch.cuh), stores of 16 bytes where the elements of a thread fill them; in all kernels, registers that spill.

usage: scripts/check_machine_code.py OBJECT...      objects of nvcc, for one or more architectures each

Needs cuobjdump and nvdisasm, of the CUDA Toolkit or of the folder .deps/cuda-binaries (`scripts/setup.sh --dev`). Exit
status: 0 as it should be, 1 not, 2 nothing was looked at.
"""
import collections
import concurrent.futures
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOLS = os.pathsep.join([os.path.join(ROOT, ".deps", "cuda-binaries"), os.environ.get("PATH", ""),
                         os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin")])
STORE = re.compile(r"\bSTG?\.E((?:\.[A-Z0-9]+)*)\s")
WIDTH = re.compile(r"\.(128|64|U?S?16|U?S?8)(?:\.|$)")
SPILL = re.compile(r"\b(?:STL|LDL)(?:\.|\s)")
# sincosf() reduces large angles by a table in local memory, on a rarely taken path. norm_reread, for rows that no
# registers hold, spills a register on sm_100.
MAY_USE_LOCAL_MEMORY = ("InitializeMap", "rope_row", "norm_reread")
STORES_OF_A_FLAT_TILE = 4  # map_pieces: as many accesses of a thread


def kernels(file):
    """(architecture, name, Counter of "16", "8", "narrow" and "spill") of each kernel of an object."""
    listing = subprocess.run(f"cuobjdump --dump-sass '{file}' | c++filt", shell=True, check=True, capture_output=True,
                             text=True, env={**os.environ, "PATH": TOOLS}).stdout
    found, architecture = [], ""
    for line in listing.splitlines():
        if line.startswith("arch = "):
            architecture = line[7:].strip()
        elif "Function :" in line:
            found.append((architecture, line.split("Function :")[1].strip(), collections.Counter()))
        elif found:
            if store := STORE.search(line):
                width = WIDTH.search(store.group(1))
                found[-1][2][{"128": "16", "64": "8"}.get(width.group(1) if width else "", "narrow")] += 1
            if SPILL.search(line):
                found[-1][2]["spill"] += 1
    return found


def problems_of(name, stores):
    kernel = re.match(r"(?:void )?harness::cuda::(map_rows|map_flat)<(.*)>\(", name)
    if kernel and kernel.group(1) == "map_rows":
        lanes = int(kernel.group(2).rsplit(",", 1)[1])
        if lanes > 1 and (stores["narrow"] or not stores["16"]):
            yield f"{stores['narrow']} stores of 4 bytes or fewer and {stores['16']} of 16, which {lanes} elements fill"
    if kernel and kernel.group(1) == "map_flat" and stores["16"] + stores["8"] < STORES_OF_A_FLAT_TILE:
        yield f"{stores['16'] + stores['8']} wide stores, where a whole tile has at least {STORES_OF_A_FLAT_TILE}"
    if stores["spill"] and not any(word in name for word in MAY_USE_LOCAL_MEMORY):
        yield f"{stores['spill']} accesses to local memory"


def main(files):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [kernel for listed in pool.map(kernels, files) for kernel in listed]
    wrong = [f"{architecture}, {name.split('(harness')[0][:150]}: {problem}" for architecture, name, stores in found
             for problem in problems_of(name, stores)]
    maps = sum("::map_rows<" in name or "::map_flat<" in name for _, name, _ in found)
    if not maps:
        print("machine code: no kernel of launch.cuh was in these files; are cuobjdump and nvdisasm there (`scripts/setup.sh "
              "--dev`)?", file=sys.stderr)
        return 2
    print("\n".join(wrong + [f"machine code: {len(found)} kernels, {maps} of them maps, {len(wrong)} problems"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
