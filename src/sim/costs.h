#pragma once

#include <cstdint>
#include <span>

#include "config/calibration.h"
#include "config/settings.h"
#include "sim/engine.h"
#include "sim/link_time.h"

namespace harness::sim {

/// The rates of one GPU that the simulation needs.
struct Device {
  double flops = 0;  // dense FLOP/s; `products.share` is a share of it
  double memory_bytes_per_s = 0;
  int multiprocessors = 0;     // 0: products are not divided into tiles
  double low_flops = 0;        // as `flops`, for products with fewer bits
  double attention_flops = 0;  // the peak that attention reaches a share of; 0: `flops`
  int compute_capability = 0;
};

/// Returns the time of `batch` products out[m, n] = a[m, k] b[k, n] that move `bytes`. The output's tiles run on the
/// multiprocessors in waves, and every wave takes as long as a full one. Takes the best of the usual tile sizes and,
/// with fewer tiles than multiprocessors, of split-k, as a library's heuristics do (NVIDIA, "Matrix Multiplication
/// Background User's Guide", sections 3 and 4). Without multiprocessors the product is a single tile of its own size.
/// Never less than the time of the bytes. `bits`: per element of a factor; below 16 the rate is low_flops, and the ramp
/// of k is 16 / `bits` times as long.
double product_seconds(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, double bytes,
                       const Device& device, const config::Calibration& calibration, int bits = 16);

/// Returns the time of one kernel that moves `bytes`.
double memory_seconds(double bytes, const Device& device, const config::Calibration& calibration);

/// Returns the time of fused attention with this many causal FLOP over `keys` keys, from the calibration's shares of
/// the peak or those of its kernel on this GPU generation. A kernel that the generation lacks runs as its usual one. At
/// s keys, s / (s + s0) of the share is reached.
double attention_seconds(double flop, std::int64_t keys, std::int64_t head_dim, bool backward, const Device& device,
                         const config::Calibration& calibration);

/// Returns the time of a forward or backward pass whose host starts together with it, as when it waits for messages
/// between stages. For a rank alone: the longest way through both, with some operations issued by the host and the rest
/// run on the GPU. Ranks that `meet` in every layer wait for whichever host is late: (G^q + H^q)^(1/q) of the sums of
/// GPU and host times, which is near the larger one when they differ much, and above it when they are alike. q is
/// fitted (docs/simulation.md).
double pass_seconds(std::span<const Cost> pass, bool meet, double q);

/// Whether ranks wait for each other in every layer: tensor ranks do, and ranks that gather its weights.
bool meet_in_layers(const program::Layout& layout, const config::Settings& settings);

/// Stretches the computations of each pass that the host issues too slowly, and sets all host times to 0. `costs`: by
/// operation of the Program's step.
void stretch_by_host(const program::ProgramSet& set, const program::Program& program, std::span<Cost> costs, bool meet,
                     double q);

/// Whether the host of this software paces passes; else it runs ahead of the GPU freely.
bool host_paces(const program::Layout& layout, const config::Settings& settings, const config::Software& software);

/// Returns the costs of a job's operations on one kind of GPU in one software. All ranks of a class are in the same
/// condition. A collective is as slow as its member with the least of the network, a message as the slower of its ends.
/// All arguments must outlive the result, which throws Error if a link in use has no rate, and NotPredicted for
/// settings that end NCCL with an error. Raises `largest_message_bytes` to the largest collective asked for.
CostOf costs_of(const RankClasses& classes, const Device& device, const Network& network,
                const config::Calibration& calibration, const config::Settings& settings, const Condition& condition,
                double& largest_message_bytes);

}  // namespace harness::sim
