#pragma once

#include "config/calibration.h"
#include "program/links.h"
#include "sim/link_time.h"

namespace harness::sim {

/// One collective of `bytes` (nccl-tests' "size"), as NCCL chooses among its algorithms and protocols: the least of
/// straight lines, a start and a time per byte for each of them, so it never falls with the size. Between nodes it
/// takes no less than its part within a node. Of an all-reduce 2 (n - 1) / n of the bytes pass each rank, of its halves
/// (n - 1) / n (Patarasuk and Yuan 2009). Throws nothing; 0 for one rank.
///
/// Sources of the lines, by what they were fitted to:
/// - a node without NVLink SHARP: VIA-Research/vTrain, A100, 1024 sizes of 1 MiB and more; below that LL's steps.
/// - a node with it: NVIDIA dgxc-benchmarking's table of 8 H100, 32 KiB to 8 GiB.
/// - a rack of more than 8: NVIDIA/nccl-tests#43 and CoreWeave's and NVIDIA's tables of GB200 NVL72, 4 to 1440 GPUs.
/// - between nodes: a ring's step of 5 us is what SimAI's 77 rates of 16 to 1024 ranks and B200 rings of 512 come to;
///   trees and NVLSTree are together's B200 tables (1 to 64 nodes).
double lines_seconds(program::Collective kind, double bytes, const Spread& spread, const Network& network,
                     const config::Calibration& calibration);

}  // namespace harness::sim
