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

}  // namespace harness::sim
