#include "machine/conditions.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

namespace harness::machine {
namespace {

struct Series {
  double mean = std::numeric_limits<double>::quiet_NaN();
  double least = mean, most = mean;
};

// Summarises the known values of a figure.
template <class Row>
Series series(std::span<const Row> rows, double Row::*figure) {
  Series out;
  double sum = 0, count = 0;
  for (const Row& row : rows) {
    const double value = row.*figure;
    if (std::isnan(value)) continue;
    out.least = std::fmin(out.least, value);  // fmin() ignores the initial NaN
    out.most = std::fmax(out.most, value);
    sum += value;
    out.mean = sum / ++count;
  }
  return out;
}

// A figure of a sample, and its statistic over several samples or devices.
struct Figure {
  double GpuSample::*of_sample;
  double GpuStatistics::*of_all;
  double Series::*summary;
};
constexpr std::array figures{
    Figure{&GpuSample::utilisation, &GpuStatistics::mean_utilisation, &Series::mean},
    Figure{&GpuSample::sm_clock_hz, &GpuStatistics::mean_sm_clock_hz, &Series::mean},
    Figure{&GpuSample::sm_clock_hz, &GpuStatistics::min_sm_clock_hz, &Series::least},
    Figure{&GpuSample::power_w, &GpuStatistics::mean_power_w, &Series::mean},
    Figure{&GpuSample::power_w, &GpuStatistics::max_power_w, &Series::most},
    Figure{&GpuSample::temperature_c, &GpuStatistics::max_temperature_c, &Series::most},
    Figure{&GpuSample::memory_used_bytes, &GpuStatistics::max_memory_used_bytes, &Series::most},
};

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
  GpuStatistics out;
  out.samples = std::ssize(samples);
  for (const Figure& f : figures) out.*f.of_all = series(samples, f.of_sample).*f.summary;
  for (const GpuSample& sample : samples) out.throttle_reasons |= sample.throttle_reasons;
  return out;
}

GpuStatistics together(std::span<const GpuStatistics> devices) {
  GpuStatistics out;
  for (const GpuStatistics& device : devices) {
    out.samples += device.samples;
    out.throttle_reasons |= device.throttle_reasons;
  }
  for (const Figure& f : figures) out.*f.of_all = series(devices, f.of_all).*f.summary;
  out.max_possible_sm_clock_hz = series(devices, &GpuStatistics::max_possible_sm_clock_hz).most;
  out.energy_j = series(devices, &GpuStatistics::energy_j).mean * static_cast<double>(devices.size());
  return out;
}

std::string harmful_throttling(std::uint64_t bits) {
  std::vector<std::string> words;
  for (std::uint64_t bit = 1; bit != 0; bit <<= 1) {
    if ((bits & bit) == 0) continue;
    const auto named = std::ranges::find(named_reasons, bit, &Named::bit);
    if (named == named_reasons.end()) {
      words.push_back(fmt::format("reason {:#x}", bit));
    } else if (!named->harmless) {
      words.emplace_back(named->words);
    }
  }
  return join(words, ", ");
}

}  // namespace harness::machine
