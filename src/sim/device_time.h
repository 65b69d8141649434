#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "config/calibration.h"
#include "program/program.h"

namespace harness::sim {

/// The rates of one GPU that the simulation needs.
struct Device {
  double flops = 0;  // FLOP/s, dense, in the precision of the products
  double memory_bytes_per_s = 0;
  int multiprocessors = 0;  // 0: products are not cut into tiles for some
};

/// `batch` products out[m, n] = a[m, k] b[k, n], that move `bytes`. Tiles of the output go to the multiprocessors in
/// waves, and a wave takes as long as a full one: the best of the usual tile sizes, and of splitting k where there are
/// fewer tiles than multiprocessors, as a library's heuristics choose (NVIDIA, "Matrix Multiplication Background User's
/// Guide", sections 3 and 4). Without multiprocessors the product is one tile, of its own size. Never less than the
/// bytes take.
double product_seconds(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, double bytes,
                       const Device& device, const config::Calibration& calibration);

/// Moving bytes, by one kernel.
double memory_seconds(double bytes, const Device& device, const config::Calibration& calibration);

/// Fused attention of this many FLOP over keys of this length.
double attention_seconds(double flop, std::int64_t keys, bool backward, const Device& device,
                         const config::Calibration& calibration);

/// An operation of a pass: what the GPU takes alone, and what the host takes to issue it.
struct Issued {
  double gpu_s = 0, host_s = 0;
};

/// How long a forward or backward pass takes whose host starts with it, as one does that waits for messages between
/// stages. One rank alone: the longest way through both, some operations issued by the host and the rest on the GPU.
/// Ranks that `meet` in every layer wait for whichever host was late this time: (G^q + H^q)^(1/q) of the sums of both,
/// which is near the longer one where they are far apart and above it where they are alike. q is fitted
/// (docs/simulation.md).
double pass_seconds(std::span<const Issued> pass, bool meet, double q);

/// By how much the computations of each pass of a Program are stretched because the host issues them too slowly; 1 for
/// everything else. `issued`: by operation of the Program's step.
std::vector<double> stretch_by_host(const program::ProgramSet& set, const program::Program& program,
                                    std::span<const Issued> issued, double q);

/// Whether the host of this software paces passes. Else it runs ahead of the GPU freely.
bool host_paces(const program::Layout& layout, const config::Software& software);

}  // namespace harness::sim
