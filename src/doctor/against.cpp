#include "doctor/against.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <tuple>

#include "base/error.h"

namespace harness::doctor {
namespace {

bool ends_with_any(std::string_view name, std::span<const std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); });
}

// Another one at every look.
bool passes(std::string_view name) {
  static constexpr std::array<std::string_view, 12> ends{
      "cpu/load",   "/swap_free_kb", "/free_bytes", "/temperature_c",     "/throttle_reasons", "/processes",
      "unfinished", "silent",        "cpu/steal",   "/steal_since_start", "/local_pages",      "/other_pages"};
  const bool of_idle_link = name.ends_with("/speed") && !name.starts_with("hca/");
  return ends_with_any(name, ends) || of_idle_link || name.starts_with("log") || name.starts_with("env/SLURM_");
}

// Of events since the node was started: fewer after another start.
bool counts_events(std::string_view name) {
  static constexpr std::array<std::string_view, 3> ends{"/ecc_uncorrected", "/aer_fatal", "/aer_correctable"};
  return name.find("/counter/") != std::string_view::npos || ends_with_any(name, ends);
}

std::string in_words(const machine::Reading& reading) {
  switch (reading.access) {
    case machine::Access::read:
      return reading.text.empty() ? "(empty)" : reading.text;
    case machine::Access::unreadable:
      return "cannot be read: " + reading.why;
    case machine::Access::absent:
      break;
  }
  return "(none)";
}

class FactChanges {
 public:
  void compare(const std::string& host, const std::string& of, const Facts& was, const Facts& now) {
    std::set<std::string> names;
    for (const auto& [name, reading] : was) names.insert(name);
    for (const auto& [name, reading] : now) names.insert(name);
    for (const std::string& name : names) {
      if (was[name] == now[name] || passes(name)) continue;
      const auto before = was.number(name), after = now.number(name);
      if (counts_events(name) && before && after && *after <= *before) continue;
      add(host, of + name, in_words(was[name]), in_words(now[name]));
    }
  }
  void add(const std::string& host, const std::string& what, const std::string& was, const std::string& now) {
    const auto [at, is_new] = places_.try_emplace({what, was, now}, all_.size());
    if (is_new) all_.push_back({what, was, now, {}});
    std::vector<std::string>& nodes = all_[at->second].nodes;
    if (nodes.empty() || nodes.back() != host) nodes.push_back(host);  // once, whatever the number of its ranks
  }
  std::vector<Change> take() { return std::move(all_); }

 private:
  std::vector<Change> all_;
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> places_;
};

std::vector<Line> not_there_before(const Diagnosis& now, const Diagnosis& then) {
  std::set<std::tuple<std::string, std::string, std::string>> known;  // check, evidence, host
  for (const Line& line : then.lines) {
    for (const std::string& host : line.nodes) known.emplace(line.check, line.finding.evidence, host);
  }
  std::vector<Line> fresh;
  for (const Line& line : now.lines) {
    if (line.finding.verdict != Verdict::fail && line.finding.verdict != Verdict::warn) continue;
    Line rest = line;
    std::erase_if(rest.nodes, [&](const std::string& host) {
      return line.check == "cpu.load" || known.contains({line.check, line.finding.evidence, host});
    });
    if (!rest.nodes.empty()) fresh.push_back(std::move(rest));
  }
  return fresh;
}

}  // namespace

Changes changes_since(const RecordedFacts& earlier, const RecordedFacts& present) {
  Changes changes;
  changes.since = earlier.created;
  std::map<std::string, const Node*> then;
  for (const Node& node : earlier.nodes) then.try_emplace(node.host, &node);
  std::set<std::string> now_there;
  FactChanges comparison;
  for (const Node& now : present.nodes) {
    now_there.insert(now.host);
    const auto was = then.find(now.host);
    if (was == then.end()) {
      changes.added.push_back(now.host);
      continue;
    }
    comparison.compare(now.host, "", was->second->facts, now.facts);
    const std::vector<Rank> ranks_before = launched_ranks(*was->second), ranks_now = launched_ranks(now);
    if (ranks_before.size() != ranks_now.size())
      comparison.add(now.host, "ranks", std::to_string(ranks_before.size()), std::to_string(ranks_now.size()));
    for (std::size_t k = 0; k < std::min(ranks_before.size(), ranks_now.size()); ++k)
      comparison.compare(now.host, "rank: ", ranks_before[k].facts, ranks_now[k].facts);
  }
  for (const Node& node : earlier.nodes) {
    if (!now_there.contains(node.host)) changes.gone.push_back(node.host);
  }
  changes.facts = comparison.take();
  changes.new_findings = not_there_before(diagnose(present.nodes), diagnose(earlier.nodes));
  return changes;
}

}  // namespace harness::doctor
