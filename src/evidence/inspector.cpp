#include <algorithm>

#include "base/error.h"
#include "base/median.h"
#include "base/text.h"
#include "base/units.h"
#include "evidence/devices.h"
#include "evidence/json_input.h"

// NCCL Inspector (NCCL plugins/profiler/inspector): objects {header, metadata, coll_perf}, format v4.0 and v5.x. Ranks
// are joined by communicator and sequence number: the rank with the shortest time came last, and the others waited for
// it.

namespace harness::evidence {
namespace {

constexpr std::size_t longest_object = 1u << 16, most_collectives = 1u << 17, most_names = 1u << 14;

std::int64_t integer_of(const Json& object, const char* key) {
  return static_cast<std::int64_t>(std::clamp(number_at(object, key, -1), -1.0, 1e18));
}

}  // namespace

void InspectorReader::line(std::string_view text) {
  for (const char c : text) {
    if (depth_ == 0 && c != '{') continue;
    if (open_.size() >= longest_object) skipping_ = true;
    if (!skipping_) open_ += c;
    if (in_string_) {
      const bool ends = c == '"' && !escaped_;
      escaped_ = c == '\\' && !escaped_;
      if (ends) in_string_ = false;
      continue;
    }
    if (c == '"') in_string_ = true;
    if (c == '{') ++depth_;
    if (c != '}' || --depth_ > 0) continue;
    if (skipping_) {
      ++damaged_;
    } else {
      object(open_);
    }
    open_.clear();
    skipping_ = false;
  }
}

void InspectorReader::object(const std::string& text) {
  Json json;
  try {
    json = parse_json(text);
  } catch (const Error&) {
    ++damaged_;
    return;
  }
  const Json& header = at(json, "header");
  const std::string communicator = text_at(header, "id");
  const std::int64_t rank = integer_of(header, "rank"), ranks = integer_of(header, "n_ranks");
  const Json& perf = at(json, at(json, "coll_perf").is_object() ? "coll_perf" : "p2p_perf");
  const std::string prefix = at(json, "coll_perf").is_object() ? "coll" : "p2p";
  if (!perf.is_object()) return;
  constexpr double micro = 1e-6, giga = 1e9;
  const double seconds = number_at(perf, (prefix + "_exec_time_us").c_str()) * micro;
  const double busbw = number_at(perf, (prefix + "_busbw_gbs").c_str()) * giga;
  if (seconds <= 0) return;
  ++records_;
  if (communicators_.size() < most_names || communicators_.contains(communicator))
    communicators_[communicator] = std::max(communicators_[communicator], ranks);
  if (hosts_.size() < most_names) hosts_.insert(text_at(at(json, "metadata"), "hostname"));
  const Key key{communicator, text_at(perf, prefix.c_str()), integer_of(perf, (prefix + "_msg_size_bytes").c_str()),
                integer_of(perf, (prefix + "_sn").c_str())};
  if (collectives_.size() >= most_collectives && !collectives_.contains(key)) {
    cut_ = true;
    return;
  }
  Collective& collective = collectives_[key];
  if (collective.records++ == 0 || seconds < collective.shortest_s) {
    collective.shortest_s = seconds;
    collective.last_rank = rank;
  }
  collective.longest_s = std::max(collective.longest_s, seconds);
  collective.busbw = std::max(collective.busbw, busbw);
}

// Collectives of one name and size, whatever the communicator.
std::vector<InspectorReader::Group> InspectorReader::groups() {
  std::map<std::pair<std::string, std::int64_t>, Group> by_kind;
  for (const auto& [key, collective] : collectives_) {
    const auto& [communicator, name, bytes, number] = key;
    Group& group = by_kind[{name, bytes}];
    group.name = name;
    group.bytes = bytes;
    group.rows.emplace_back(number, collective);
  }
  std::vector<Group> out;
  for (auto& [kind, group] : by_kind) out.push_back(std::move(group));
  const auto total = [](const Group& group) {
    double seconds = 0;
    for (const auto& [number, collective] : group.rows) seconds += collective.shortest_s;
    return -seconds;
  };
  std::ranges::stable_sort(out, {}, total);
  return out;
}

Answer InspectorReader::finish() {
  if (records_ == 0) fail("it holds no collective of NCCL Inspector");
  Answer out;
  out.object = "inspector";
  out.kind = "nccl inspector";
  const std::vector<Group> all = groups();
  std::int64_t ranks = 0;
  for (const auto& [id, n] : communicators_) ranks = std::max(ranks, n);
  out.facts = {{"kind", out.kind},
               {"ranks", ranks},
               {"hosts", static_cast<std::int64_t>(hosts_.size())},
               {"communicators", static_cast<std::int64_t>(communicators_.size())}};
  std::vector<std::string> kinds;
  for (const Group& group : all)
    kinds.push_back(fmt::format("{} {} B x {}", group.name, group.bytes, group.rows.size()));
  out.facts.emplace_back("collectives", join_first(kinds, 4));

  // The group that takes most of the time.
  const Group& first = all.front();
  std::vector<double> rates, shortest;
  for (const auto& [number, collective] : first.rows) {
    rates.push_back(collective.busbw);
    shortest.push_back(collective.shortest_s);
  }
  const double usual = median(shortest);
  out.facts.emplace_back("median_busbw", fmt::format("{:.1f} GB/s", median(rates) / 1e9));
  out.headline =
      fmt::format("{} of {}: median busbw {:.1f} GB/s over {} calls", first.name,
                  print_bytes_exact(std::max<std::int64_t>(first.bytes, 0)), median(rates) / 1e9, first.rows.size());
  constexpr double slow = 1.25;
  std::vector<std::string> late;
  std::map<std::int64_t, std::int64_t> last;
  for (const auto& [number, collective] : first.rows) {
    if (collective.shortest_s > slow * usual)
      late.push_back(
          fmt::format("sequence {}: {:.0f} us against {:.0f}", number, collective.shortest_s * 1e6, usual * 1e6));
    if (collective.records > 1 && collective.longest_s > slow * collective.shortest_s) ++last[collective.last_rank];
  }
  if (!late.empty()) {
    out.facts.emplace_back("slow", join_first(late, 4));
    out.headline += fmt::format("; {} slow", late.size() == 1 ? "one was" : fmt::format("{} were", late.size()));
    out.problems.push_back(join_first(late, 4) + ": all ranks were slow, so it is the network or the switches");
  }
  for (const Group& group : all) {
    if (out.evidence.size() > 6) break;
    std::vector<double> group_rates, times;
    for (const auto& [number, collective] : group.rows) {
      group_rates.push_back(collective.busbw);
      times.push_back(collective.shortest_s);
    }
    out.evidence.emplace_back(group.name,
                              fmt::format("{}: {} calls, median {} and {:.1f} GB/s busbw",
                                          print_bytes_exact(std::max<std::int64_t>(group.bytes, 0)), group.rows.size(),
                                          seconds_text(median(times)), median(group_rates) / 1e9));
  }
  if (!last.empty()) {
    const auto most = std::ranges::max_element(last, {}, [](const auto& row) { return row.second; });
    out.facts.emplace_back("straggler", most->first);
    out.problems.push_back(
        fmt::format("rank {} came last to {} of {} calls (its time is the shortest): look at that rank", most->first,
                    most->second, first.rows.size()));
  }
  if (ranks > 0) out.next.push_back(fmt::format("mpirun -np {} ./harness doctor", ranks));
  if (damaged_ > 0) out.notes.push_back(fmt::format("{} objects could not be read", damaged_));
  if (cut_) out.notes.emplace_back("only the first 131,072 collectives were joined over ranks");
  return out;
}

}  // namespace harness::evidence
