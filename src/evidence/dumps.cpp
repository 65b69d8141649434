#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <tuple>

#include "base/median.h"
#include "base/text.h"
#include "base/units.h"
#include "evidence/devices.h"
#include "evidence/input.h"

// PyTorch's Flight Recorder (torch/csrc/distributed/c10d/FlightRecorder, versions 2.2 to 2.10): `entries` are the last
// collectives that a rank enqueued, `pg_status` shows the progress of each group.

namespace harness::evidence {
namespace {

// "all_reduce" of "nccl:all_reduce".
std::string short_name(const std::string& name) {
  return name.substr(name.rfind(':') + 1);
}

// "4096 x 4096 bf16"
std::string shape_text(const Json& entry) {
  const Json& sizes = at(entry, "input_sizes");
  std::vector<std::string> parts;
  if (sizes.is_array() && !sizes.empty() && sizes.front().is_array()) {
    for (const Json& size : sizes.front()) {
      if (parts.size() < 8 && size.is_number()) parts.push_back(size.dump());
    }
  }
  const Json& types = at(entry, "input_dtypes");
  std::string type =
      types.is_array() && !types.empty() && types.front().is_string() ? types.front().get<std::string>() : "";
  type = mapped("BFloat16=bf16|Half=fp16|Float=fp32", type).value_or(type);
  return join(parts, " x ") + (type.empty() ? "" : " " + type);
}

// "[0, 1, 2, 3]"
std::vector<std::int64_t> ranks_in(const Json& value) {
  std::vector<std::int64_t> ranks;
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  constexpr std::size_t most = 1u << 20;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t first = part.find_first_of("0123456789");
    std::int64_t rank = 0;
    if (first == std::string_view::npos || ranks.size() >= most) continue;
    if (Cursor c{part.substr(first)}; c.integer(rank)) ranks.push_back(rank);
  }
  return ranks;
}

std::string call_text(const FlightRecorder::Member& member, std::int64_t number) {
  return fmt::format("{} {}", value_at(member.entries, number, {"collective", "", ""}).name, number);
}

// Different collectives under one sequence number are a program error. all_to_all, gather and scatter may differ in
// size.
void compare_calls(const FlightRecorder::Group& group, const FlightRecorder::Member& ahead, Answer& out) {
  for (const FlightRecorder::Member& member : group.members) {
    for (const auto& [number, entry] : member.entries) {
      const auto found = ahead.entries.find(number);
      if (found == ahead.entries.end() || !out.headline.empty()) continue;
      const auto& other = found->second;
      const bool own_sizes = is_one_of("all_to_all|gather|scatter", entry.name);
      if (entry.name == other.name && (entry.shape == other.shape || own_sizes)) continue;
      out.problem(fmt::format("collective {} is {} of {} on {} and {} of {} on {}", number, entry.name, entry.shape,
                              member.name(), other.name, other.shape, ahead.name()),
                  "the program calls different ones");
    }
  }
}

}  // namespace

void FlightRecorder::file(const std::string& text, const std::string& name) {
  const Json json = parse_json(text, "frames");
  if (!at(json, "entries").is_array()) fail("it holds no entries of PyTorch's Flight Recorder");
  std::int64_t rank = integer_at(json, "rank");
  if (rank < 0) {  // files are named PREFIX_RANK or PREFIXRANK, once converted PREFIX_RANK.json
    std::string_view stem = name;
    for (const std::string_view extension : {".gz", ".json"}) {
      if (stem.ends_with(extension)) stem.remove_suffix(extension.size());
    }
    const std::size_t digits = stem.find_last_not_of("0123456789");
    if (digits != std::string_view::npos && digits + 1 < stem.size() && stem.size() - digits < 9)
      rank = static_cast<std::int64_t>(as_number(stem.substr(digits + 1)).value_or(-1));
  }
  // pg_status and entries use the group numbers of this rank. Group names, which entries also contain, are the same on
  // all ranks and in pg_config.
  std::map<std::string, std::string> names;
  for (const Json& entry : at(json, "entries")) {
    const Json& group = at(entry, "process_group");
    if (group.is_array() && !group.empty() && group.front().is_string())
      names.emplace(text_at(entry, "pg_id"), group.front().get<std::string>());
  }
  const auto name_of = [&](const std::string& number) { return value_at(names, number, number); };
  std::map<std::string, Member> members;
  for (const auto& [id, group] : at(json, "pg_config").items()) {
    Group& own = groups_[id];
    own.description = text_at(group, "desc").empty() ? "group " + id : text_at(group, "desc");
    own.ranks = ranks_in(at(group, "ranks"));
  }
  for (const auto& [id, status] : at(json, "pg_status").items()) {
    // The number of a group whose entries have been overwritten may be the name of another group.
    const std::string group = name_of(id);
    const std::vector<std::int64_t>& ranks = groups_[group].ranks;
    if (rank >= 0 && !ranks.empty() && std::ranges::find(ranks, rank) == ranks.end()) continue;
    Member& member = members[group];
    member.enqueued = integer_at(status, "last_enqueued_collective");
    member.started = integer_at(status, "last_started_collective");
    member.completed = integer_at(status, "last_completed_collective");
  }
  for (const Json& entry : at(json, "entries")) {
    std::int64_t number = integer_at(entry, "collective_seq_id");
    if (number < 0) number = integer_at(entry, "seq_id");  // version 1
    if (number < 0 || at(entry, "is_p2p") == true) continue;
    Member& member = members[name_of(text_at(entry, "pg_id"))];
    const std::string state = text_at(entry, "state");
    member.enqueued = std::max(member.enqueued, number);
    if (state == "started" || state == "completed") member.started = std::max(member.started, number);
    if (state == "completed") member.completed = std::max(member.completed, number);
    member.entries[number] = {short_name(text_at(entry, "profiling_name")), shape_text(entry), state};
  }
  for (auto& [id, member] : members) {
    member.rank = rank;
    member.file = name;
    Group& group = groups_[id];
    if (group.description.empty()) group.description = "group " + id;
    group.members.push_back(std::move(member));
  }
}

// Returns the ranks that others wait for. A rank with an open collective in another group is late because of that one.
std::vector<const FlightRecorder::Member*> FlightRecorder::late_in(const Group& group) const {
  std::set<std::string> waiting;  // by file
  for (const auto& [id, any] : groups_) {
    for (const Member& member : any.members)
      if (member.is_open()) waiting.insert(member.file);
  }
  const std::int64_t last = std::ranges::max_element(group.members, {}, &Member::enqueued)->enqueued;
  std::vector<const Member*> late;
  for (const Member& member : group.members)
    if (member.enqueued < last && !waiting.contains(member.file)) late.push_back(&member);
  return late;
}

Answer FlightRecorder::finish() const {
  Answer out = Answer::of("flight_recorder", "flight recorder");
  const Group* worst = nullptr;
  std::tuple<bool, bool, std::ptrdiff_t> most;
  for (const auto& [id, group] : groups_) {
    if (group.members.empty()) continue;
    const std::tuple key(!late_in(group).empty(), std::ranges::any_of(group.members, &Member::is_open),
                         -std::ssize(group.members));
    if (worst == nullptr || key > most) std::tie(worst, most) = std::pair(&group, key);
  }
  if (worst == nullptr) fail("it holds no collective");
  const std::vector<const Member*> late = late_in(*worst);
  const Member& ahead = *std::ranges::max_element(worst->members, {}, &Member::enqueued);
  const Member& behind = late.empty() ? *std::ranges::min_element(worst->members, {}, &Member::enqueued) : *late[0];
  const bool several = worst->members.size() > 1;
  if (!several && behind.rank >= 0) out.fact("rank", behind.rank);
  out.fact("group", fmt::format("{}, {}", worst->description, plural(std::ssize(worst->ranks), "rank")));
  if (behind.started >= 0) out.fact("last_started", behind.started);
  if (behind.completed >= 0) out.fact("last_completed", behind.completed);
  std::vector<const Member*> shown = late;
  std::vector<std::string> suspects, missing;
  for (const Member* member : late) suspects.push_back(member->name());
  for (const Member& member : worst->members)
    if (std::ranges::find(late, &member) == late.end()) shown.push_back(&member);
  for (const Member* member : std::span(shown).first(std::min<std::size_t>(shown.size(), 8)))
    out.tell(member->name(), fmt::format("enqueued {}, started {}, completed {}", member->enqueued, member->started,
                                         member->completed));
  const bool told = std::ranges::all_of(worst->members, [](const Member& member) { return member.rank >= 0; });
  for (const std::int64_t rank : worst->ranks) {
    if (told && std::ranges::find(worst->members, rank, &Member::rank) == worst->members.end())
      missing.push_back(fmt::format("rank {}", rank));
  }
  compare_calls(*worst, ahead, out);
  const auto found = behind.entries.find(behind.completed + 1);
  if (several && !late.empty()) {
    out.fact("suspect", some_of(suspects));
    out.problem(fmt::format("{} never came to {}", some_of(suspects), call_text(ahead, behind.enqueued + 1)),
                "that is the suspect, not those that wait; what was that rank doing?");
  } else if (found != behind.entries.end()) {
    const std::string state = fmt::format("{} of {} {}, not completed", call_text(behind, behind.completed + 1),
                                          found->second.shape, found->second.state);
    out.fact("state", state);
    if (!several) {
      out.headline = fmt::format("{}: {}", behind.name(), state);
    } else if (missing.empty() && out.problems.empty()) {
      out.problem("every rank: " + state, "all are in it, so it is the network or a GPU");
    }
  } else if (out.headline.empty() && (missing.empty() || !several)) {
    const bool idle = several && std::ranges::none_of(worst->members, &Member::is_open);
    out.headline = fmt::format("{} completed {} and had not come to {}", idle ? "every rank" : behind.name(),
                               call_text(behind, behind.completed), behind.completed + 1);
    if (!several)
      out.notes.emplace_back("a rank that is behind the others is the suspect: read all ranks' files together");
  }
  if (several && !missing.empty())
    out.problem("no file of " + some_of(missing), "a rank without one is the first suspect");
  if (!several && worst->ranks.size() > 1)
    out.next.emplace_back("./harness read FILES_OF_ALL_RANKS     # who is behind?");
  return out;
}

// NCCL Inspector (NCCL plugins/profiler/inspector): objects {header, metadata, coll_perf}, formats v4.0 and v5.x. Ranks
// are joined by communicator and sequence number. The rank with the shortest time came last; the others waited for it.

void InspectorReader::line(std::string_view text) {
  constexpr std::size_t longest_object = 1u << 16;
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
  constexpr std::size_t most_collectives = 1u << 17, most_names = 1u << 14;
  Json json;
  try {
    json = parse_json(text);
  } catch (const Error&) {
    ++damaged_;
    return;
  }
  const Json& header = at(json, "header");
  const std::string communicator = text_at(header, "id");
  const std::int64_t rank = integer_at(header, "rank"), ranks = integer_at(header, "n_ranks");
  const Json& perf = at(json, at(json, "coll_perf").is_object() ? "coll_perf" : "p2p_perf");
  const std::string prefix = at(json, "coll_perf").is_object() ? "coll" : "p2p";
  if (!perf.is_object()) return;
  constexpr double micro = 1e-6, giga = 1e9;
  const double seconds = number_at(perf, (prefix + "_exec_time_us").c_str()) * micro;
  const double busbw = number_at(perf, (prefix + "_busbw_gbs").c_str()) * giga;
  if (seconds <= 0) return;
  if (communicators_.size() < most_names || communicators_.contains(communicator))
    communicators_[communicator] = std::max(communicators_[communicator], ranks);
  if (hosts_.size() < most_names) hosts_.insert(text_at(at(json, "metadata"), "hostname"));
  const Kind kind{text_at(perf, prefix.c_str()), integer_at(perf, (prefix + "_msg_size_bytes").c_str())};
  const Place place{communicator, integer_at(perf, (prefix + "_sn").c_str())};
  const auto known = collectives_.find(kind);
  const bool is_new = known == collectives_.end() || !known->second.contains(place);
  if (is_new && kept_ >= most_collectives) {
    cut_ = true;
    return;
  }
  kept_ += is_new ? 1 : 0;
  Collective& collective = collectives_[kind][place];
  if (collective.records++ == 0 || seconds < collective.shortest_s) {
    collective.shortest_s = seconds;
    collective.last_rank = rank;
  }
  collective.longest_s = std::max(collective.longest_s, seconds);
  collective.busbw = std::max(collective.busbw, busbw);
}

Answer InspectorReader::finish() {
  if (collectives_.empty()) fail("it holds no collective of NCCL Inspector");
  constexpr double giga = 1e9, micro = 1e-6, slow = 1.25;
  Answer out = Answer::of("inspector", "nccl inspector");
  struct Group {
    std::string name, size;
    std::int64_t bytes;
    const std::map<Place, Collective>* rows;
    double total_s, usual_s, busbw;  // sum and medians of the shortest times
  };
  std::vector<Group> all;  // longest total time first
  for (const auto& [kind, rows] : collectives_) {
    const auto& [name, bytes] = kind;
    std::vector<double> times, rates;
    for (const auto& [at, collective] : rows) {
      times.push_back(collective.shortest_s);
      rates.push_back(collective.busbw);
    }
    all.push_back({name, print_bytes_exact(std::max<std::int64_t>(bytes, 0)), bytes, &rows,
                   std::accumulate(times.begin(), times.end(), 0.0), median(times), median(rates)});
  }
  std::ranges::stable_sort(all, std::greater<>(), &Group::total_s);
  std::int64_t ranks = 0;
  for (const auto& [id, n] : communicators_) ranks = std::max(ranks, n);
  out.fact("ranks", ranks);
  out.fact("hosts", std::ssize(hosts_));
  out.fact("communicators", std::ssize(communicators_));
  std::vector<std::string> kinds, late;
  for (const Group& group : all) {
    kinds.push_back(fmt::format("{} {} B x {}", group.name, group.bytes, group.rows->size()));
    if (out.evidence.size() < 7)
      out.tell(group.name, fmt::format("{}: {} calls, median {} and {:.1f} GB/s busbw", group.size, group.rows->size(),
                                       seconds_text(group.usual_s), group.busbw / giga));
  }
  out.fact("collectives", join_first(kinds, 4));
  const Group& first = all.front();
  out.fact("median_busbw", fmt::format("{:.1f} GB/s", first.busbw / giga));
  out.headline = fmt::format("{} of {}: median busbw {:.1f} GB/s over {} calls", first.name, first.size,
                             first.busbw / giga, first.rows->size());
  using Rank = std::pair<std::string, std::int64_t>;  // communicator, rank in it
  std::map<Rank, std::int64_t> last;                  // number of calls to which it came last
  std::map<std::string, std::int64_t> waited;         // by communicator: number of calls in which ranks waited
  const auto place = [&](const std::string& communicator) {
    return communicators_.size() > 1 ? " of communicator " + communicator : "";
  };
  for (const auto& [at, collective] : *first.rows) {
    const auto& [communicator, number] = at;
    if (collective.shortest_s > slow * first.usual_s)
      late.push_back(fmt::format("sequence {}{}: {:.0f} us against {:.0f}", number, place(communicator),
                                 collective.shortest_s / micro, first.usual_s / micro));
    if (collective.records < 2 || collective.longest_s <= slow * collective.shortest_s) continue;
    ++waited[communicator];
    ++last[{communicator, collective.last_rank}];
  }
  std::erase_if(last, [&](const auto& row) {  // some rank comes last to each call
    constexpr std::int64_t least = 4;
    return row.second < least || 3 * row.second < 2 * waited[row.first.first];
  });
  if (!late.empty()) {
    out.fact("slow", join_first(late, 4));
    out.headline += fmt::format("; {} slow", plural(std::ssize(late), "call"));
    out.problems.push_back(join_first(late, 4) + ": all ranks were slow, so it is the network or the switches");
  }
  if (!last.empty()) {
    const auto most = std::ranges::max_element(last, {}, [](const auto& row) { return row.second; });
    const auto& [communicator, rank] = most->first;
    const std::string where = place(communicator);
    const std::string text = fmt::format("rank {}{} came last to {} of {} calls that others waited in", rank, where,
                                         most->second, waited[communicator]);
    out.fact("straggler", rank);
    if (!where.empty()) out.fact("straggler_communicator", communicator);
    out.headline += "; " + text;
    out.problem(text, "look at that rank; its time is the shortest, for the others waited");
  }
  if (ranks > 0) say(out.next, "mpirun -np {} ./harness doctor", ranks);
  if (damaged_ > 0) say(out.notes, "{} objects could not be read", damaged_);
  if (cut_) out.notes.emplace_back("only the first 131,072 collectives were joined over ranks");
  return out;
}

}  // namespace harness::evidence
