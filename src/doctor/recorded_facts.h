#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "doctor/facts.h"

namespace harness::doctor {

/// The facts of all nodes at one time, as a result file records them.
struct RecordedFacts {
  std::string created, tool_version;
  std::vector<Node> nodes;
};

/// One JSON object. A fact that all nodes have alike stands in it once. Bytes that are no UTF-8 are lost.
std::string write_facts(const RecordedFacts& facts);

/// The largest text that read_facts() takes.
inline constexpr std::size_t most_fact_bytes = std::size_t{64} << 20;

/// Throws Error with `name`, one line, for everything that write_facts() does not write: too much of it, no JSON, JSON
/// of something else, a later version, facts that are no texts. Its time and memory grow linearly with the text.
RecordedFacts read_facts(const std::string& text, const std::string& name);

}  // namespace harness::doctor
