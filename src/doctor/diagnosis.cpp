#include "doctor/diagnosis.h"

#include <algorithm>
#include <tuple>

#include "doctor/consensus.h"

namespace harness::doctor {
namespace {

void add(std::vector<Line>& lines, const std::string& check, const Finding& finding, const std::string& docs,
         const std::string& host) {
  const auto same = [&](const Line& line) {
    return line.check == check && line.finding.verdict == finding.verdict && line.finding.evidence == finding.evidence;
  };
  // Equal findings are those of one check, so they are near the end.
  const auto found = std::find_if(lines.rbegin(), lines.rend(), same);
  if (found != lines.rend()) {
    found->nodes.push_back(host);
  } else {
    lines.push_back({check, finding, docs, {host}});
  }
}

bool is_bad(const Line& line) {
  return line.finding.verdict == Verdict::fail || line.finding.verdict == Verdict::warn;
}

}  // namespace

std::size_t Diagnosis::count(Verdict verdict) const {
  return static_cast<std::size_t>(
      std::ranges::count(lines, verdict, [](const Line& line) { return line.finding.verdict; }));
}

Diagnosis diagnose(const std::vector<Node>& nodes) {
  Diagnosis diagnosis;
  diagnosis.nodes = nodes.size();
  for (const Node& node : nodes) {
    diagnosis.ranks += node.ranks.size();
    diagnosis.gpus += std::max(
        {node.facts.under("gpu").size(), node.facts.under("driver/gpu").size(), node.facts.under("nvml").size()});
  }
  diagnosis.checks = checks().size();
  for (const Check& check : checks()) {
    std::vector<Line> lines;
    for (const Node& node : nodes) {
      Findings findings;
      check.judge(node, nodes, findings);
      for (const Finding& finding : findings.list()) add(lines, check.id, finding, check.docs, node.host);
    }
    diagnosis.lines.insert(diagnosis.lines.end(), lines.begin(), lines.end());
  }
  const auto told = [&](const std::string& check, const std::string& host) {
    return std::ranges::any_of(diagnosis.lines, [&](const Line& line) {
      return line.check == check && is_bad(line) && std::ranges::find(line.nodes, host) != line.nodes.end();
    });
  };
  std::vector<Line> differing;
  for (const Difference& difference : differences(nodes)) {
    if (told(difference.told_by, difference.host)) continue;
    add(differing, difference.check, difference.finding, "docs/doctor.md", difference.host);
  }
  diagnosis.lines.insert(diagnosis.lines.end(), differing.begin(), differing.end());
  std::ranges::stable_sort(diagnosis.lines, {}, [](const Line& line) { return line.finding.verdict; });
  return diagnosis;
}

int exit_code(const Diagnosis& diagnosis, bool strict) {
  if (diagnosis.count(Verdict::fail) > 0) return 2;
  return strict && diagnosis.count(Verdict::warn) > 0 ? 1 : 0;
}

}  // namespace harness::doctor
