#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/capture.h"
#include "traces/classes.h"

namespace harness::traces {

/// The GPU events of a device as stretches of time, in seconds since its first event.
struct Timeline {
  std::int64_t origin_ns = 0, end_ns = 0;
  std::uint32_t main_stream = 0;                                // with most computation
  Stretches computation, communication, copies, kernels, busy;  // kernels: computation or communication

  double seconds(std::int64_t ns) const { return static_cast<double>(ns - origin_ns) * 1e-9; }
};

/// `device` has at least one event.
Timeline timeline_of(const Device& device, const std::vector<Class>& classes);

inline bool is_kernel(const GpuEvent& event) {
  return event.work == Work::kernel || event.work == Work::graph;
}

/// The points of `stretches` between two times.
Stretches clipped(const Stretches& stretches, double from_s, double to_s);

/// Where the time of a window went, in seconds:
/// step = compute + exposed_communication + exposed_memory + idle. All are lengths of unions, never sums.
struct Figures {
  std::string window;
  double step_s = 0, busy_s = 0, compute_s = 0, communication_s = 0, exposed_communication_s = 0, overlapped_s = 0,
         memcpy_s = 0, exposed_memory_s = 0, idle_s = 0;
  std::int64_t kernels = 0, collectives = 0;        // that start inside the window
  std::optional<double> unclassified;               // the share of the time of these kernels; absent: there are none
  std::vector<std::pair<std::string, double>> top;  // the five kernels with the largest sums of durations
};

/// Computes the figures of windows of one device.
class Measure {
 public:
  Measure(const Device& device, const Timeline& timeline, const std::vector<Class>& classes, const Names& names);

  Figures of(const Window& window);
  std::int64_t kernels_in(const Window& window) const;

 private:
  struct Sums {
    std::int64_t kernels = 0, collectives = 0, kernel_ns = 0, unknown_ns = 0;
  };
  std::pair<std::size_t, std::size_t> events_in(const Window& window) const;
  std::vector<std::pair<std::string, double>> top(std::size_t first, std::size_t last);

  const Device& device_;
  const Timeline& timeline_;
  const Names& names_;
  std::vector<Sums> before_;   // of the events before each
  std::size_t looked_at_ = 0;  // by top()
};

/// The names of kernels without a class and the seconds that they ran, the ten largest.
std::vector<std::pair<std::string, double>> names_without_class(const Device& device, const std::vector<Class>& classes,
                                                                const Names& names);

}  // namespace harness::traces
