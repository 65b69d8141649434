"""Shows the overheads of harness itself in a result file: the time from the start of a block's workers to the end of
its first step, and the measured memory of a worker against the planned memory.

usage: overheads.py RESULT.h5        (needs h5py)
"""
import sys

import h5py
import numpy as np

with h5py.File(sys.argv[1]) as f:
    blocks, cases = f["blocks"][:], f["cases"][:]
    print(f"{'case':50} {'first step s':>12} {'planned MiB':>12} {'measured MiB':>13} {'measured - planned':>19}")
    for case in cases:
        mine = (blocks["case"] == case["case"]) & (blocks["status"] == b"ok")
        if not mine.any():
            continue
        first = np.median(blocks["first_step_s"][mine])
        planned = case["planned_memory_bytes"] / 2**20
        measured = blocks["peak_memory_bytes"][mine].max() / 2**20
        print(f"{case['name'].decode():50} {first:12.3f} {planned:12.1f} {measured:13.1f} {measured - planned:19.1f}")
