#pragma once

#include <string>

#include "store/result.h"

namespace harness::report {

/// The profiled step of a case as Chrome's trace events (a JSON object with traceEvents, for ui.perfetto.dev and
/// chrome://tracing): a process per rank, a thread per track of analysis::drawn_step(), a complete event per operation,
/// in microseconds on the clock that all ranks share. The events are those of the PyTorch profiler (Kineto), so that
/// its tools and `harness read` take them: operations are of category "kernel", the step of a rank is a
/// gpu_user_annotation "ProfilerStep#0", and "loading" is the filling of its inputs. Their arguments say what the
/// breakdown of the step needs. One rank of each role is there. Throws Error when there is no such case or no timeline
/// of it.
std::string trace_json(const store::Result& result, const std::string& case_name);

}  // namespace harness::report
