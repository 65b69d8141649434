#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "doctor/against.h"
#include "report/document.h"

namespace harness::cli {

/// What doctor saw at the start of a sweep, as its result file records it. Throws Error.
doctor::RecordedFacts read_doctors_record(const std::string& path);

/// What changed since the file `path` was written: new findings, then facts, node by node.
report::Section since_section(const doctor::Changes& changes, const std::string& path);
nlohmann::ordered_json since_json(const doctor::Changes& changes);

}  // namespace harness::cli
