#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/capture.h"
#include "traces/timeline.h"

namespace harness::traces {

/// Why nothing ran on a GPU, by the event that ended the gap and the call that launched it.
enum class Cause : std::uint8_t {
  queued,        // it had been launched before the gap: dispatch between kernels
  launch,        // the call itself, and its way to the GPU
  profiler,      // overhead of the profiler
  loading,       // the data loader was waited for
  allocation,    // cudaMalloc, cudaFree and the like
  module,        // code was loaded
  synchronised,  // the host had waited for the GPU, and launched late
  garbage,       // Python's garbage collection
  host,          // the host was too slow to launch
  unknown,       // the launch is not in the file
};
inline constexpr std::size_t cause_count = 10;
std::string_view key_of(Cause cause);    // "synchronised"
std::string_view title_of(Cause cause);  // "after a synchronisation"

struct IdleStretch {
  Stretch stretch;
  Cause cause = Cause::unknown;
};

/// The gaps between the first and the last event of a device by cause, by start, in seconds of the timeline. They add
/// up to its idle time.
std::vector<IdleStretch> find_idle(const Capture& capture, const Device& device, const Timeline& timeline,
                                   const Launches& launches);

/// Seconds by cause between two times.
std::array<double, cause_count> idle_between(const std::vector<IdleStretch>& idle, double from_s, double to_s);

}  // namespace harness::traces
