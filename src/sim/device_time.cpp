#include "sim/device_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace harness::sim {
namespace {

struct Tile {
  std::int64_t m, n;
  double share;  // of what the largest tiles reach: smaller ones reuse less of what they load
};
constexpr std::array<Tile, 6> tiles{
    {{256, 128, 1.0}, {128, 256, 1.0}, {128, 128, 0.95}, {128, 64, 0.80}, {64, 128, 0.80}, {64, 64, 0.65}}};
constexpr std::int64_t least_split_k = 512;

double up(double whole, double part) {
  return std::ceil(whole / part);
}

}  // namespace

double product_seconds(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, double bytes,
                       const Device& device, const config::Calibration& c) {
  const double moving_s = bytes / (device.memory_bytes_per_s * c.memory_share);
  if (device.multiprocessors == 0) {
    const double flop = 2.0 * static_cast<double>(m * n * batch) * (static_cast<double>(k) + c.product_ramp);
    return std::max(flop / (device.flops * c.product_share), moving_s) + c.software.kernel_s;
  }
  const double of_one = device.flops / device.multiprocessors * c.product_share;
  double best_s = std::numeric_limits<double>::infinity();
  for (const Tile& tile : tiles) {
    const double count = up(static_cast<double>(m), static_cast<double>(tile.m)) *
                         up(static_cast<double>(n), static_cast<double>(tile.n)) * static_cast<double>(batch);
    for (const int split : {1, 2, 4, 8}) {
      if (split > 1 && (count >= device.multiprocessors || k / split < least_split_k)) break;
      const double waves = up(count * split, device.multiprocessors);
      const double each =
          2.0 * static_cast<double>(tile.m * tile.n) * (static_cast<double>(k) / split + c.product_ramp);
      double seconds = waves * each / (of_one * tile.share);
      // The parts of a split product are f32 and are added up by a second kernel.
      if (split > 1) seconds += 8.0 * static_cast<double>(m * n) * split / (device.memory_bytes_per_s * c.memory_share);
      best_s = std::min(best_s, seconds);
    }
  }
  return std::max(best_s, moving_s) + c.software.kernel_s;
}

double memory_seconds(double bytes, const Device& device, const config::Calibration& c) {
  return bytes / (device.memory_bytes_per_s * c.memory_share) + c.software.kernel_s;
}

double attention_seconds(double flop, std::int64_t keys, bool backward, const Device& device,
                         const config::Calibration& c) {
  const double share = backward ? c.attention_backward : c.attention_forward;
  const auto length = static_cast<double>(keys);
  return flop / (device.flops * share * length / (length + c.attention_ramp)) + c.software.kernel_s;
}

namespace {

bool meet_in_layers(const program::Layout& layout) {
  return layout[program::Axis::tensor] > 1;
}

// Work that the GPU does one after the other: computations, and what tensor ranks tell each other between them.
bool is_in_pass(const program::ProgramSet& set, const program::Operation& op) {
  const program::Phase phase = op.label.phase;
  if (phase != program::Phase::forward && phase != program::Phase::backward) return false;
  if (!program::is_communication(op.action)) return true;
  const program::GroupId group = program::group_of(op.action);
  return group >= 0 && set.groups[group].axes == program::AxisSet::of({program::Axis::tensor});
}

}  // namespace

double pass_seconds(std::span<const Issued> pass, bool meet, double q) {
  double gpu_s = 0, host_s = 0;
  for (const Issued& op : pass) {
    gpu_s += op.gpu_s;
    host_s += op.host_s;
  }
  if (meet) return std::pow(std::pow(gpu_s, q) + std::pow(host_s, q), 1 / q);
  double longest_s = gpu_s, issued_s = 0, rest_s = gpu_s;
  for (const Issued& op : pass) {
    issued_s += op.host_s;
    longest_s = std::max(longest_s, issued_s + rest_s);
    rest_s -= op.gpu_s;
  }
  return longest_s;
}

std::vector<double> stretch_by_host(const program::ProgramSet& set, const program::Program& program,
                                    std::span<const Issued> issued, double q) {
  const std::vector<program::Operation>& step = program.step;
  std::vector<double> stretch(step.size(), 1);
  std::vector<Issued> pass;
  std::vector<std::size_t> computations;
  double computing_s = 0;
  const auto close = [&] {
    double gpu_s = 0;
    for (const Issued& op : pass) gpu_s += op.gpu_s;
    if (computing_s > 0) {
      const double longer = 1 + (pass_seconds(pass, meet_in_layers(set.layout), q) - gpu_s) / computing_s;
      for (const std::size_t id : computations) stretch[id] = longer;
    }
    pass.clear();
    computations.clear();
    computing_s = 0;
  };
  const program::Label* last = nullptr;
  for (std::size_t id = 0; id < step.size(); ++id) {
    const program::Operation& op = step[id];
    if (!is_in_pass(set, op)) continue;
    if (last != nullptr && (last->phase != op.label.phase || last->micro_batch != op.label.micro_batch)) close();
    last = &op.label;
    pass.push_back(issued[id]);
    if (program::is_communication(op.action)) continue;
    computations.push_back(id);
    computing_s += issued[id].gpu_s;
  }
  close();
  return stretch;
}

bool host_paces(const program::Layout& layout, const config::Software& software) {
  return software.host_s > 0 && software.host_power > 0 &&
         (meet_in_layers(layout) || layout[program::Axis::pipeline] > 1);
}

}  // namespace harness::sim
