#pragma once

#include <string>

#include "evidence/input.h"
#include "traces/capture.h"

namespace harness::traces {

/// Reads a trace of the PyTorch profiler (Kineto, JSON; all versions since 2021), or of `harness trace`, as a stream. A
/// file that was cut short gives what came before, and events that cannot be parsed are left out, both with a note.
/// Throws Error for a file that is no such trace, for one with more than 1 % of its events damaged, and for one with
/// more than most_events.
Capture read_kineto(evidence::Input& input, const std::string& path);

}  // namespace harness::traces
