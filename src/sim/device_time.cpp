#include "sim/costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace harness::sim {
namespace {

struct Tile {
  std::int64_t m, n;
  double share;  // relative to the largest tiles: smaller ones reuse less of what they load
};
constexpr std::array<Tile, 6> tiles{
    {{256, 128, 1.0}, {128, 256, 1.0}, {128, 128, 0.95}, {128, 64, 0.80}, {64, 128, 0.80}, {64, 64, 0.65}}};
constexpr std::int64_t least_split_k = 512;

double up(double whole, double part) {
  return std::ceil(whole / part);
}

using Kernel = config::AttentionKernel;

// Shares of the dense bf16 peak in causal attention over long sequences, heads of 128; `ramp`: keys at half of them.
struct AttentionRow {
  int generation;  // compute capability, 90 is 9.0
  Kernel kernel;
  double forward, backward, ramp;
};
constexpr int ampere = 80, hopper = 90, blackwell = 100;
constexpr std::array<AttentionRow, 9> attention_rows{{
    {ampere, Kernel::fa2, .62, .52, 500},        // Dao 2023, "FlashAttention-2", figures 4 to 6
    {ampere, Kernel::fa1, .48, .27, 500},        // the Triton version: Dao et al. 2022, "FlashAttention"
    {hopper, Kernel::cudnn, .58, .48, 600},      // charts of Shah et al. 2024, "FlashAttention-3", 512 to 16384 keys
    {hopper, Kernel::fa1, .25, .14, 500},        // in Triton without wgmma: A100's time over 1.6 to 1.75
    {hopper, Kernel::fa2, .355, .31, 450},       // from the charts of FlashAttention-3
    {hopper, Kernel::fa3, .64, .50, 700},        // from the charts of FlashAttention-3
    {blackwell, Kernel::cudnn, .50, .38, 1000},  // FlashAttention-4's page: 1.3 times as slow as FA4
    {blackwell, Kernel::fa2, .20, .16, 600},     // FlashAttention-4's page: 2.7 times as slow as FA4
    {blackwell, Kernel::fa4, .66, .48, 1000},    // FlashAttention-4's page: 1605 to 1613 TFLOP/s
}};

const AttentionRow& attention_row(Kernel kernel, int capability) {
  int generation = ampere;
  if (capability >= hopper) generation = hopper;
  if (capability >= blackwell) generation = blackwell;
  const AttentionRow* usual = nullptr;
  for (const AttentionRow& row : attention_rows) {
    if (row.generation != generation) continue;
    if (row.kernel == kernel) return row;
    if (usual == nullptr) usual = &row;
  }
  return *usual;
}

// Narrow heads leave less work for the tensor cores between two softmaxes (the charts of FlashAttention-2 and 3).
double share_of_heads(Kernel kernel, std::int64_t head_dim) {
  if (head_dim >= 128 || kernel == Kernel::fa1) return 1;
  if (kernel == Kernel::fa2) return 0.92;
  return head_dim < 96 ? 0.75 : 0.85;
}

// Whether an operation is work that the GPU runs in sequence: computation, or communication of tensor ranks.
bool is_in_pass(const program::ProgramSet& set, const program::Operation& op) {
  const program::Phase phase = op.label.phase;
  if (phase != program::Phase::forward && phase != program::Phase::backward) return false;
  if (!program::is_communication(op.action)) return true;
  const program::GroupId group = program::group_of(op.action);
  return group >= 0 && set.groups[group].axes == program::AxisSet::of({program::Axis::tensor});
}

}  // namespace

double product_seconds(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, double bytes,
                       const Device& device, const config::Calibration& c, int bits) {
  const bool low = bits < 16;
  const double rate = low ? device.low_flops : device.flops, ramp = low ? c.product_ramp * 16 / bits : c.product_ramp;
  const double moving_s = bytes / (device.memory_bytes_per_s * c.memory_share);
  if (device.multiprocessors == 0) {
    const double flop = 2.0 * static_cast<double>(m * n * batch) * (static_cast<double>(k) + ramp);
    return std::max(flop / (rate * c.product_share), moving_s) + c.software.kernel_s;
  }
  const double of_one = rate / device.multiprocessors * c.product_share;
  double best_s = std::numeric_limits<double>::infinity();
  for (const Tile& tile : tiles) {
    const double count = up(static_cast<double>(m), static_cast<double>(tile.m)) *
                         up(static_cast<double>(n), static_cast<double>(tile.n)) * static_cast<double>(batch);
    for (const int split : {1, 2, 4, 8}) {
      if (split > 1 && (count >= device.multiprocessors || k / split < least_split_k)) break;
      const double waves = up(count * split, device.multiprocessors);
      const double each = 2.0 * static_cast<double>(tile.m * tile.n) * (static_cast<double>(k) / split + ramp);
      double seconds = waves * each / (of_one * tile.share);
      // Split-k leaves partial results in f32, which a second kernel adds up.
      if (split > 1) seconds += 8.0 * static_cast<double>(m * n) * split / (device.memory_bytes_per_s * c.memory_share);
      best_s = std::min(best_s, seconds);
    }
  }
  return std::max(best_s, moving_s) + c.software.kernel_s;
}

double memory_seconds(double bytes, const Device& device, const config::Calibration& c) {
  return bytes / (device.memory_bytes_per_s * c.memory_share) + c.software.kernel_s;
}

double attention_seconds(double flop, std::int64_t keys, std::int64_t head_dim, bool backward, const Device& device,
                         const config::Calibration& c) {
  double share = backward ? c.attention_backward : c.attention_forward, ramp = c.attention_ramp;
  if (c.attention_kernel) {
    const AttentionRow& row = attention_row(*c.attention_kernel, device.compute_capability);
    constexpr double with_scores = 2.5 / 2;  // papers count the scores that the backward pass computes again
    share = (backward ? row.backward / with_scores : row.forward) * share_of_heads(row.kernel, head_dim);
    ramp = row.ramp;
  }
  const auto length = static_cast<double>(keys);
  const double peak = device.attention_flops > 0 ? device.attention_flops : device.flops;
  return flop / (peak * share * length / (length + ramp)) + c.software.kernel_s;
}

bool meet_in_layers(const program::Layout& layout, const config::Settings& settings) {
  const bool gathers = settings.sharding == config::Sharding::parameters && layout[program::Axis::data] > 1;
  return layout[program::Axis::tensor] > 1 || gathers;
}

double pass_seconds(std::span<const Cost> pass, bool meet, double q) {
  double gpu_s = 0, host_s = 0;
  for (const Cost& op : pass) {
    gpu_s += seconds_of(op.alone);
    host_s += seconds_of(op.host);
  }
  if (meet) return std::pow(std::pow(gpu_s, q) + std::pow(host_s, q), 1 / q);
  double longest_s = gpu_s, issued_s = 0, rest_s = gpu_s;
  for (const Cost& op : pass) {
    issued_s += seconds_of(op.host);
    longest_s = std::max(longest_s, issued_s + rest_s);
    rest_s -= seconds_of(op.alone);
  }
  return longest_s;
}

void stretch_by_host(const program::ProgramSet& set, const program::Program& program, std::span<Cost> costs, bool meet,
                     double q) {
  std::vector<Cost> pass;
  std::vector<std::size_t> computations;
  const auto close = [&] {
    double gpu_s = 0, computing_s = 0;
    for (const Cost& op : pass) gpu_s += seconds_of(op.alone);
    for (const std::size_t id : computations) computing_s += seconds_of(costs[id].alone);
    const double longer = computing_s > 0 ? 1 + (pass_seconds(pass, meet, q) - gpu_s) / computing_s : 1;
    for (const std::size_t id : computations) costs[id].alone = ticks_of(seconds_of(costs[id].alone) * longer);
    pass.clear();
    computations.clear();
  };
  const program::Label* last = nullptr;
  for (std::size_t id = 0; id < costs.size(); ++id) {
    const program::Operation& op = program.step[id];
    if (!is_in_pass(set, op)) continue;
    if (last != nullptr && (last->phase != op.label.phase || last->micro_batch != op.label.micro_batch)) close();
    last = &op.label;
    pass.push_back(costs[id]);
    if (!program::is_communication(op.action)) computations.push_back(id);
  }
  close();
  for (Cost& cost : costs) cost.host = 0;
}

bool host_paces(const program::Layout& layout, const config::Settings& settings, const config::Software& software) {
  return software.host_s > 0 && software.host_power > 0 &&
         (meet_in_layers(layout, settings) || layout[program::Axis::pipeline] > 1);
}

}  // namespace harness::sim
