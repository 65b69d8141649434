#pragma once

#include <string>

#include "store/result.h"

namespace harness::report {

/// The profiled step of a case as Chrome's trace events (a JSON object with traceEvents, for ui.perfetto.dev and
/// chrome://tracing): a process per rank, a thread per track of analysis::drawn_step(), a complete event per operation,
/// in microseconds on the clock that all ranks share. One rank of each role is there. Throws Error when there is no
/// such case or no timeline of it.
std::string trace_json(const store::Result& result, const std::string& case_name);

}  // namespace harness::report
