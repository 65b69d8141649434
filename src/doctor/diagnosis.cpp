#include "doctor/diagnosis.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "doctor/consensus.h"

namespace harness::doctor {
namespace {

// The lines of one check after another; equal findings become one.
class Lines {
 public:
  Lines() = default;
  explicit Lines(std::vector<Line> lines) : all_(std::move(lines)) {
    for (std::size_t i = 0; i < all_.size(); ++i)
      places_.try_emplace({all_[i].check, all_[i].finding.verdict, all_[i].finding.evidence}, i);
  }
  void add(const std::string& check, const Finding& finding, const std::string& docs, const std::string& host) {
    const auto [at, is_new] = places_.try_emplace({check, finding.verdict, finding.evidence}, all_.size());
    if (is_new) all_.push_back({check, finding, docs, {}});
    std::vector<std::string>& nodes = all_[at->second].nodes;
    if (!host.empty() && (nodes.empty() || nodes.back() != host)) nodes.push_back(host);
  }
  /// Worst first.
  std::vector<Line> take() {
    std::ranges::stable_sort(all_, {}, [](const Line& line) { return line.finding.verdict; });
    return std::move(all_);
  }
  const std::vector<Line>& all() const { return all_; }

 private:
  std::vector<Line> all_;
  std::map<std::tuple<std::string, Verdict, std::string>, std::size_t> places_;
};

bool is_bad(const Line& line) {
  return line.finding.verdict == Verdict::fail || line.finding.verdict == Verdict::warn;
}

}  // namespace

std::string where_of(const Line& line, std::size_t all_nodes) {
  if (line.nodes.size() == all_nodes && all_nodes > 1) return fmt::format("all {}", all_nodes);
  constexpr std::size_t shown = 3;
  return join_first(line.nodes, shown);
}

std::size_t Diagnosis::count(Verdict verdict) const {
  return static_cast<std::size_t>(
      std::ranges::count(lines, verdict, [](const Line& line) { return line.finding.verdict; }));
}

Diagnosis count_nodes(const std::vector<Node>& nodes) {
  Diagnosis diagnosis;
  diagnosis.nodes = nodes.size();
  for (const Node& node : nodes) {
    diagnosis.ranks += node.ranks.size();
    diagnosis.dark += told_nothing(node.facts) ? 1 : 0;
    diagnosis.gpus += std::max(
        {node.facts.under("gpu").size(), node.facts.under("driver/gpu").size(), node.facts.under("nvml").size()});
  }
  return diagnosis;
}

Diagnosis diagnose(const std::vector<Node>& nodes) {
  Diagnosis diagnosis = count_nodes(nodes);
  const Cluster cluster(nodes);
  Lines lines;
  for (const Check& check : checks()) {
    for (const Node& node : nodes) {
      for (const Finding& finding : judge(check, node, cluster)) lines.add(check.id, finding, check.docs, node.host);
    }
  }
  std::set<std::pair<std::string, std::string>> told;  // check and host of what is bad
  for (const Line& line : lines.all()) {
    if (!is_bad(line)) continue;
    for (const std::string& host : line.nodes) told.emplace(line.check, host);
  }
  for (const Difference& difference : differences(nodes)) {
    if (told.contains({difference.told_by, difference.host})) continue;
    lines.add(difference.check, difference.finding, "docs/doctor.md", difference.host);
  }
  diagnosis.lines = lines.take();
  return diagnosis;
}

void add(Diagnosis& diagnosis, const std::vector<Said>& said) {
  Lines lines(std::move(diagnosis.lines));
  for (const Said& one : said) lines.add(one.check, one.finding, "docs/doctor.md", one.host);
  diagnosis.lines = lines.take();
}

int exit_code(const Diagnosis& diagnosis, bool strict) {
  if (diagnosis.count(Verdict::fail) > 0) return 2;
  if (diagnosis.dark > 0) return 3;
  return strict && diagnosis.count(Verdict::warn) > 0 ? 1 : 0;
}

}  // namespace harness::doctor
