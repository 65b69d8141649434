#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "launch/machine.h"

namespace harness::launch {

// What the kernel's text files of /proc and /sys say. Texts that are not as expected yield NaN: some containers hide
// these files, others fake them.

/// A whole file; "" if it cannot be read.
std::string kernel_text(const std::filesystem::path& path);

/// CPU time since the machine started, summed over the CPUs asked for. Seconds.
struct CpuTimes {
  double busy_s = 0;   // user and kernel, interrupts included
  double steal_s = 0;  // wanted, but given to other guests of the host
  double all_s = 0;    // busy, stolen, idle
};
/// From /proc/stat; `ticks_per_s` is its unit. NaN unless it has a line for every CPU of the set, and for one at least.
CpuTimes cpu_times(std::string_view proc_stat, const CpuSet& cpus, double ticks_per_s);

/// The load average of the last minute, from /proc/loadavg.
double load_of_last_minute(std::string_view proc_loadavg);

/// From a CPU's scaling_cur_freq, which is in kHz.
double clock_hz(std::string_view scaling_cur_freq);

}  // namespace harness::launch
