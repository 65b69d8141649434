#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "doctor/against.h"
#include "report/document.h"

namespace harness::cli {

/// What doctor saw at another time or place: a bundle, or the record in a result file. Throws Error.
doctor::Bundle read_doctors_file(const std::string& path);

/// Writes what was seen, with names and addresses replaced. Throws Error like write_output().
void write_doctors_file(const std::string& path, const doctor::Bundle& seen, bool overwrite);

/// What changed since the file `path` was written: new findings, then facts, node by node.
report::Section since_section(const doctor::Changes& changes, const std::string& path);
nlohmann::ordered_json since_json(const doctor::Changes& changes);

}  // namespace harness::cli
