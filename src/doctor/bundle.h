#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "doctor/facts.h"

namespace harness::doctor {

/// The facts of all nodes at one time, as a file holds them: a bundle that somebody sends, or the record in a result.
struct Bundle {
  std::string created, tool_version;
  bool replaced = false;  // names and addresses stand for others (replace.h)
  std::vector<Node> nodes;
};

/// One JSON object. A fact that all nodes have alike stands in it once. Bytes that are no UTF-8 are lost.
std::string write_bundle(const Bundle& bundle);

/// The largest text that read_bundle() takes.
inline constexpr std::size_t most_bundle_bytes = std::size_t{64} << 20;

/// Throws Error with `name`, one line, for everything that write_bundle() does not write: too much of it, no JSON, JSON
/// of something else, a later version, facts that are no texts.
Bundle read_bundle(const std::string& text, const std::string& name);

}  // namespace harness::doctor
