#pragma once

#include <cstdint>

#include "config/calibration.h"

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

}  // namespace harness::sim
