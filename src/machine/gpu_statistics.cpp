#include "machine/gpu_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace harness::machine {
namespace {

struct Series {
  double sum = 0, least = 0, most = 0;
  std::int64_t count = 0;

  void add(double value) {
    if (std::isnan(value)) return;
    least = count == 0 ? value : std::min(least, value);
    most = count == 0 ? value : std::max(most, value);
    sum += value;
    ++count;
  }
  double known(double value) const { return count == 0 ? std::numeric_limits<double>::quiet_NaN() : value; }
  double mean() const { return known(sum / static_cast<double>(count)); }
};

struct Named {
  std::uint64_t bit;
  const char* words;
  bool harmless;
};
// https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html
constexpr std::array<Named, 9> named_reasons = {{{0x1, "idle", true},
                                                 {0x2, "application clocks setting", true},
                                                 {0x4, "power cap", false},
                                                 {0x8, "hardware slowdown", false},
                                                 {0x10, "sync boost with other GPUs", false},
                                                 {0x20, "software thermal slowdown", false},
                                                 {0x40, "hardware thermal slowdown", false},
                                                 {0x80, "hardware power brake", false},
                                                 {0x100, "display clock setting", true}}};

}  // namespace

GpuStatistics summarise(std::span<const GpuSample> samples) {
  Series utilisation, clock, power, temperature, memory;
  GpuStatistics out;
  for (const GpuSample& sample : samples) {
    utilisation.add(sample.utilisation);
    clock.add(sample.sm_clock_hz);
    power.add(sample.power_w);
    temperature.add(sample.temperature_c);
    memory.add(sample.memory_used_bytes);
    out.throttle_reasons |= sample.throttle_reasons;
  }
  out.samples = static_cast<std::int64_t>(samples.size());
  out.mean_utilisation = utilisation.mean();
  out.mean_sm_clock_hz = clock.mean();
  out.min_sm_clock_hz = clock.known(clock.least);
  out.mean_power_w = power.mean();
  out.max_power_w = power.known(power.most);
  out.max_temperature_c = temperature.known(temperature.most);
  out.max_memory_used_bytes = memory.known(memory.most);
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
