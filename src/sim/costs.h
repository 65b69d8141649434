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
  double flops = 0;  // FLOP/s, dense, of which `products.share` is a share
  double memory_bytes_per_s = 0;
  int multiprocessors = 0;     // 0: products are not cut into tiles for some
  double low_flops = 0;        // as `flops`, of products with fewer bits
  double attention_flops = 0;  // the peak, of which attention has a share; 0: `flops` is it
  int compute_capability = 0;

  /// This time at other clocks.
  Device at_clock(double share) const {
    Device d = *this;
    d.flops *= share;
    d.low_flops *= share;
    d.attention_flops *= share;
    return d;
  }
};

/// `batch` products out[m, n] = a[m, k] b[k, n], that move `bytes`. Tiles of the output go to the multiprocessors in
/// waves, and a wave takes as long as a full one: the best of the usual tile sizes, and of splitting k where there are
/// fewer tiles than multiprocessors, as a library's heuristics choose (NVIDIA, "Matrix Multiplication Background User's
/// Guide", sections 3 and 4). Without multiprocessors the product is one tile, of its own size. Never less than the
/// bytes take. `bits`: of an element of a factor; with fewer than 16 the device has low_flops, and k ramps up to its
/// rate as many times as slowly.
double product_seconds(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, double bytes,
                       const Device& device, const config::Calibration& calibration, int bits = 16);

/// Moving bytes, by one kernel.
double memory_seconds(double bytes, const Device& device, const config::Calibration& calibration);

/// Fused attention of this many causal FLOP over keys of this length, by the shares of the peak that the calibration
/// states, or of its kernel on this generation of GPUs. A kernel that a generation does not have runs as that
/// generation's usual one. A share s / (s + s0) of it at s keys.
double attention_seconds(double flop, std::int64_t keys, std::int64_t head_dim, bool backward, const Device& device,
                         const config::Calibration& calibration);

/// How long a forward or backward pass takes whose host starts with it, as one does that waits for messages between
/// stages. One rank alone: the longest way through both, some operations issued by the host and the rest on the GPU.
/// Ranks that `meet` in every layer wait for whichever host was late this time: (G^q + H^q)^(1/q) of the sums of both,
/// which is near the longer one where they are far apart and above it where they are alike. q is fitted
/// (docs/simulation.md).
double pass_seconds(std::span<const Cost> pass, bool meet, double q);

/// Whether ranks wait for each other in every layer: tensor ranks, and those that gather its weights.
bool meet_in_layers(const program::Layout& layout, const config::Settings& settings);

/// Stretches the computations of each pass of a Program, which the host issues too slowly: its time is then in those
/// that it holds up. `costs`: by operation of the Program's step.
void stretch_by_host(const program::ProgramSet& set, const program::Program& program, std::span<Cost> costs, bool meet,
                     double q);

/// Whether the host of this software paces passes. Else it runs ahead of the GPU freely.
bool host_paces(const program::Layout& layout, const config::Settings& settings, const config::Software& software);

/// The costs of the operations of a job on one kind of GPU, in one software. The ranks of a class are in one condition.
/// A collective is as slow as the member with the least of the network, a message as the slower of its two ends. All
/// arguments must outlive it. It throws Error if a link that an operation uses has no rate, and NotPredicted for
/// settings of NCCL with which it ends. `largest_message_bytes`: is raised to the largest collective of those asked
/// for.
CostOf costs_of(const RankClasses& classes, const Device& device, const Network& network,
                const config::Calibration& calibration, const config::Settings& settings, const Condition& condition,
                double& largest_message_bytes);

}  // namespace harness::sim
