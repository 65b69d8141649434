#include "analysis/bottleneck.h"
namespace harness {
const char* name_of(Part) {
  return "part";
}
std::vector<CaseBreakdown> break_down(const Result&) {
  return {};
}
const CaseBreakdown* find_breakdown(const std::vector<CaseBreakdown>&, int) {
  return nullptr;
}
std::optional<Waterfall> waterfall(const Result&, const CaseSummary&, const CaseBreakdown&) {
  return {};
}
Stragglers find_stragglers(const Result&, std::size_t, std::size_t) {
  return {};
}
double Breakdown::overlapped_s() const {
  return 0;
}
const char* name_of(BottleneckKind) {
  return "kind";
}
Bottleneck find_bottleneck(const Result&, const CaseBreakdown&, const Waterfall*, const Stragglers&) {
  return {};
}
std::vector<std::string> fired_rules(const Result&, const Summary&, const CaseBreakdown&) {
  return {};
}
std::vector<std::string> fired_rules(const Result&, const Summary&) {
  return {};
}
}  // namespace harness
