#pragma once

#include <span>
#include <string_view>

namespace harness::evidence {

/// A line that NCCL logs with WARN and that people ask about.
struct NcclWarningKind {
  std::string_view name;      // "status=12"
  std::string_view pattern;   // alternatives between '|', each of parts between '&' that must all be there
  std::string_view headline;  // {host} and {peer} are replaced; the cause in one clause
  std::string_view remedy;
  bool effect = false;   // something else failed before: never a cause
  bool of_peer = false;  // the suspect is the peer that the line names, not the host that logged it
};

/// In the order in which they are tried.
std::span<const NcclWarningKind> nccl_warning_kinds();
/// nullptr: none of these.
const NcclWarningKind* nccl_warning_kind(std::string_view text);

}  // namespace harness::evidence
