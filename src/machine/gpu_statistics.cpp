#include "machine/gpu_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace harness::machine {
namespace {

struct Series {
  double mean = std::numeric_limits<double>::quiet_NaN();
  double least = mean, most = mean;
};

// Takes those values of a figure that are known.
template <class Row>
Series series(std::span<const Row> rows, double Row::*figure) {
  Series out;
  double sum = 0, count = 0;
  for (const Row& row : rows) {
    const double value = row.*figure;
    if (std::isnan(value)) continue;
    out.least = std::fmin(out.least, value);  // the value where there is none yet
    out.most = std::fmax(out.most, value);
    sum += value;
    out.mean = sum / ++count;
  }
  return out;
}

struct Named {
  std::uint64_t bit;
  const char* words;
  bool harmless;
};
// https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html
constexpr std::array<Named, 9> named_reasons = {{{0x1, "idle", true},
                                                 {0x2, "application clocks setting", true},
                                                 {0x4, power_cap.data(), false},
                                                 {0x8, "hardware slowdown", false},
                                                 {0x10, "sync boost with other GPUs", false},
                                                 {0x20, "software thermal slowdown", false},
                                                 {0x40, "hardware thermal slowdown", false},
                                                 {0x80, "hardware power brake", false},
                                                 {0x100, "display clock setting", true}}};

}  // namespace

GpuStatistics summarise(std::span<const GpuSample> samples) {
  const auto of = [&](double GpuSample::*figure) { return series(samples, figure); };
  GpuStatistics out;
  out.samples = std::ssize(samples);
  out.mean_utilisation = of(&GpuSample::utilisation).mean;
  out.mean_sm_clock_hz = of(&GpuSample::sm_clock_hz).mean;
  out.min_sm_clock_hz = of(&GpuSample::sm_clock_hz).least;
  out.mean_power_w = of(&GpuSample::power_w).mean;
  out.max_power_w = of(&GpuSample::power_w).most;
  out.max_temperature_c = of(&GpuSample::temperature_c).most;
  out.max_memory_used_bytes = of(&GpuSample::memory_used_bytes).most;
  out.max_pcie_generation = of(&GpuSample::pcie_generation).most;
  for (const GpuSample& sample : samples) out.throttle_reasons |= sample.throttle_reasons;
  return out;
}

GpuStatistics together(std::span<const GpuStatistics> devices) {
  const auto of = [&](double GpuStatistics::*figure) { return series(devices, figure); };
  GpuStatistics out;
  for (const GpuStatistics& device : devices) {
    out.samples += device.samples;
    out.throttle_reasons |= device.throttle_reasons;
  }
  out.mean_utilisation = of(&GpuStatistics::mean_utilisation).mean;
  out.mean_sm_clock_hz = of(&GpuStatistics::mean_sm_clock_hz).mean;
  out.min_sm_clock_hz = of(&GpuStatistics::min_sm_clock_hz).least;
  out.max_possible_sm_clock_hz = of(&GpuStatistics::max_possible_sm_clock_hz).most;
  out.mean_power_w = of(&GpuStatistics::mean_power_w).mean;
  out.max_power_w = of(&GpuStatistics::max_power_w).most;
  out.max_temperature_c = of(&GpuStatistics::max_temperature_c).most;
  out.max_memory_used_bytes = of(&GpuStatistics::max_memory_used_bytes).most;
  out.max_pcie_generation = of(&GpuStatistics::max_pcie_generation).most;
  out.possible_pcie_generation = of(&GpuStatistics::possible_pcie_generation).most;
  out.energy_j = of(&GpuStatistics::energy_j).mean * static_cast<double>(devices.size());
  return out;
}

std::vector<ThrottleReason> throttle_reasons(std::uint64_t bits) {
  std::vector<ThrottleReason> reasons;
  for (std::uint64_t bit = 1; bit != 0; bit <<= 1) {
    if ((bits & bit) == 0) continue;
    const auto named = std::ranges::find(named_reasons, bit, &Named::bit);
    if (named != named_reasons.end()) {
      reasons.push_back({named->words, named->harmless});
    } else {
      reasons.push_back({fmt::format("reason {:#x}", bit), false});
    }
  }
  return reasons;
}

std::string harmful_throttling(std::uint64_t bits) {
  std::vector<std::string> words;
  for (const ThrottleReason& reason : throttle_reasons(bits)) {
    if (!reason.harmless) words.push_back(reason.words);
  }
  return join(words, ", ");
}

}  // namespace harness::machine
