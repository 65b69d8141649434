#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "traces/capture.h"
#include "traces/timeline.h"

namespace harness::traces {

/// The windows of docs/read.md: "all", then "host:NAME" of each step that is marked, then "device:NAME": from the first
/// GPU event that was launched inside the mark to that of the next mark. The last of several marks has none.
std::vector<Window> windows_of(const Capture& capture, const Device& device, const Timeline& timeline,
                               const Launches& launches);

/// The steps of a device.
struct Steps {
  std::string how;                 // how they were found, for people; "": there are none
  std::vector<Window> windows;     // by start
  std::vector<std::size_t> alike;  // windows to compare: without the first ones and without those that stand out
  std::vector<std::size_t> odd;    // that have other numbers of kernels: logging, evaluation, checkpoints
  std::size_t shown = 0;           // the one of median length among `alike`
  bool no_optimizer = false;       // a period without optimizer kernels: a layer, or inference
};

/// By marks of the profiler, annotations that recur, or the period of the kernels on the main stream.
Steps find_steps(const Capture& capture, const Device& device, const Timeline& timeline, const Launches& launches,
                 const std::vector<Class>& classes, const Measure& measure);

}  // namespace harness::traces
