#include "doctor/check.h"

namespace harness::doctor {

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::fail:
      return "fail";
    case Verdict::warn:
      return "warn";
    case Verdict::unknown:
      return "unknown";
    case Verdict::info:
      return "info";
    case Verdict::skip:
      return "skip";
    case Verdict::pass:
      return "pass";
  }
  return "";
}

bool Findings::nothing_in(const machine::Reading& reading, const std::string& what, const std::string& without) {
  if (reading.access == machine::Access::unreadable) unknown(what, reading.why);
  if (reading.access == machine::Access::absent) skip(without);
  return !reading.ok();
}

const std::vector<Check>& checks() {
  static const std::vector<Check> all = [] {
    std::vector<Check> together;
    for (const auto& family :
         {gpu_checks(), port_checks(), pcie_checks(), rank_checks(), system_checks(), lint_checks()}) {
      together.insert(together.end(), family.begin(), family.end());
    }
    return together;
  }();
  return all;
}

}  // namespace harness::doctor
