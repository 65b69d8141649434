#include "sweep/identity.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace harness::sweep {
namespace {

constexpr std::size_t max_named_ranks = 8, max_named_values = 16;

std::string name_ranks(const std::vector<std::size_t>& ranks, const std::vector<job::RankPlace>& places) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(ranks.size(), max_named_ranks); ++i) {
    const std::string host = ranks[i] < places.size() ? places[ranks[i]].host : "?";
    names.push_back(fmt::format("rank {} ({})", ranks[i], host));
  }
  std::string text = join(names, ", ");
  if (ranks.size() > max_named_ranks) text += fmt::format(" and {} more", ranks.size() - max_named_ranks);
  return text;
}

}  // namespace

std::vector<std::string> compare_identities(const std::vector<NameValues>& by_rank,
                                            const std::vector<job::RankPlace>& places) {
  // name → value → ranks. Every rank is entered under every name.
  std::map<std::string, std::map<std::string, std::vector<std::size_t>>> seen;
  for (const NameValues& identity : by_rank) {
    for (const auto& [name, value] : identity) seen[name];
  }
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    const std::map<std::string, std::string> mine(by_rank[rank].begin(), by_rank[rank].end());
    for (auto& [name, values] : seen) {
      const auto at = mine.find(name);
      values[at == mine.end() ? "absent" : at->second].push_back(rank);
    }
  }
  std::vector<std::string> lines;
  for (const auto& [name, values] : seen) {
    if (values.size() == 1) continue;
    // On a tie the value of the lowest rank wins, so that the answer does not depend on how values sort.
    const auto majority = std::ranges::max_element(values, [](const auto& a, const auto& b) {
      if (a.second.size() != b.second.size()) return a.second.size() < b.second.size();
      return a.second.front() > b.second.front();
    });
    std::vector<std::string> others;
    for (const auto& [value, ranks] : values) {
      if (value != majority->first) others.push_back(fmt::format("{} on {}", value, name_ranks(ranks, places)));
    }
    lines.push_back(
        fmt::format("{}: {} on {} ranks, but {}", name, majority->first, majority->second.size(), join(others, "; ")));
  }
  return lines;
}

std::string said_by_ranks(const std::vector<std::string>& by_rank) {
  std::vector<std::pair<std::string, std::int64_t>> values;
  for (const std::string& value : by_rank) {
    const auto at = std::ranges::find(values, value, &std::pair<std::string, std::int64_t>::first);
    if (at != values.end()) {
      ++at->second;
    } else if (values.size() <= max_named_values) {
      values.emplace_back(value, 1);
    }
  }
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(values.size(), max_named_values); ++i)
    parts.push_back(fmt::format("{} ({})", values[i].first, plural(values[i].second, "rank")));
  if (values.size() > max_named_values) parts.emplace_back("others");
  return join(parts, "; ");
}

}  // namespace harness::sweep
