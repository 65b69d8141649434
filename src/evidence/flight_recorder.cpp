#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "evidence/devices.h"
#include "evidence/json_input.h"

// PyTorch's Flight Recorder (torch/csrc/distributed/c10d/FlightRecorder, versions 2.2 to 2.10): `entries` are the last
// collectives that a rank enqueued, `pg_status` how far each group came.

namespace harness::evidence {
namespace {

constexpr std::size_t most_entries = 100'000, most_groups = 10'000;

std::int64_t number_of(const Json& object, const char* key) {
  return static_cast<std::int64_t>(std::clamp(number_at(object, key, -1), -1.0, 1e15));
}

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
  if (type == "BFloat16") type = "bf16";
  if (type == "Half") type = "fp16";
  if (type == "Float") type = "fp32";
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

}  // namespace

void FlightRecorder::file(const std::string& text, const std::string& name) {
  const Json json = parse_json(text, "frames");
  if (!at(json, "entries").is_array()) fail("it holds no entries of PyTorch's Flight Recorder");
  std::int64_t rank = number_of(json, "rank");
  if (rank < 0) {  // files are named PREFIX_RANK or PREFIXRANK
    const std::size_t digits = name.find_last_not_of("0123456789");
    if (digits != std::string::npos && digits + 1 < name.size() && name.size() - digits < 9)
      rank = static_cast<std::int64_t>(as_number(std::string_view(name).substr(digits + 1)).value_or(-1));
  }
  std::map<std::string, Member> members;
  for (const auto& [id, group] : at(json, "pg_config").items()) {
    if (groups_.size() >= most_groups) break;
    Group& own = groups_[id];
    own.description = text_at(group, "desc").empty() ? "group " + id : text_at(group, "desc");
    own.numbers = ranks_in(at(group, "ranks"));
    own.ranks = static_cast<std::int64_t>(own.numbers.size());
  }
  for (const auto& [id, status] : at(json, "pg_status").items()) {
    if (members.size() >= most_groups) break;
    Member& member = members[id];
    member.enqueued = number_of(status, "last_enqueued_collective");
    member.started = number_of(status, "last_started_collective");
    member.completed = number_of(status, "last_completed_collective");
  }
  std::size_t entries = 0;
  for (const Json& entry : at(json, "entries")) {
    if (++entries > most_entries || at(entry, "is_p2p") == true) continue;
    const std::string id = text_at(entry, "pg_id");
    std::int64_t number = number_of(entry, "collective_seq_id");
    if (number < 0) number = number_of(entry, "seq_id");  // version 1
    if (number < 0 || (members.size() >= most_groups && !members.contains(id))) continue;
    Member& member = members[id];
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

Answer FlightRecorder::finish() const {
  Answer out;
  out.object = "flight_recorder";
  out.kind = "flight recorder";
  out.facts.emplace_back("kind", out.kind);
  const Group* worst = nullptr;
  for (const auto& [id, group] : groups_) {
    if (group.members.empty()) continue;
    const auto open = [](const Member& member) { return member.enqueued > member.completed; };
    const bool stuck = std::ranges::any_of(group.members, open);
    if (worst == nullptr || (stuck && std::ranges::none_of(worst->members, open))) worst = &group;
  }
  if (worst == nullptr) fail("it holds no collective");
  const auto last = [](const Member& member) { return member.enqueued; };
  const Member& behind = *std::ranges::min_element(worst->members, {}, last);
  const Member& ahead = *std::ranges::max_element(worst->members, {}, last);
  const bool several = worst->members.size() > 1;
  if (!several && behind.rank >= 0) out.facts.emplace_back("rank", behind.rank);
  out.facts.emplace_back("group", fmt::format("{}, {}", worst->description, plural(worst->ranks, "rank")));
  if (behind.started >= 0 && behind.started > behind.completed) out.facts.emplace_back("last_started", behind.started);
  if (behind.completed >= 0) out.facts.emplace_back("last_completed", behind.completed);

  for (const Member& member : worst->members) {
    if (out.evidence.size() >= 8) break;
    out.evidence.emplace_back(
        member.rank >= 0 ? fmt::format("rank {}", member.rank) : member.file,
        fmt::format("enqueued {}, started {}, completed {}", member.enqueued, member.started, member.completed));
  }
  const auto entry_text = [](const Member& member, std::int64_t number) {
    const auto found = member.entries.find(number);
    return fmt::format("{} {}", found == member.entries.end() ? "collective" : found->second.name, number);
  };
  const std::int64_t next = behind.completed + 1;
  const std::string who = behind.rank >= 0 ? fmt::format("rank {}", behind.rank) : behind.file;
  if (several && behind.enqueued < ahead.enqueued) {
    out.headline = fmt::format("{} never came to {}", who, entry_text(ahead, behind.enqueued + 1));
    out.facts.emplace_back("suspect", who);
    out.problems.push_back(out.headline + ": it is the suspect, not those that wait for it; what was that rank doing?");
  } else if (const auto found = behind.entries.find(next); found != behind.entries.end()) {
    const std::string state =
        fmt::format("{} {} of {} {}, not completed", found->second.name, next, found->second.shape,
                    found->second.state == "scheduled" ? "enqueued" : found->second.state);
    out.facts.emplace_back("state", state);
    out.headline = fmt::format("{}: {}", several ? "every rank" : who, state);
    if (several) out.problems.push_back(out.headline + ": all are in it, so it is the network or a GPU");
  } else {
    out.headline =
        fmt::format("{} completed {} and had not come to {}", who, entry_text(behind, behind.completed), next);
    if (!several)
      out.notes.emplace_back("a rank that is behind the others is the suspect: read all ranks' files together");
  }
  // One sequence number, several collectives: the program is wrong.
  for (const Member& member : worst->members) {
    for (const auto& [number, entry] : member.entries) {
      const auto other = ahead.entries.find(number);
      if (other == ahead.entries.end() || (other->second.name == entry.name && other->second.shape == entry.shape))
        continue;
      out.problems.push_back(
          fmt::format("collective {} is {} of {} on one rank and {} of {} on another: the program calls "
                      "different ones",
                      number, entry.name, entry.shape, other->second.name, other->second.shape));
      break;
    }
  }
  std::set<std::int64_t> seen;
  for (const Member& member : worst->members) seen.insert(member.rank);
  std::vector<std::string> missing;
  for (const std::int64_t rank : worst->numbers) {
    if (!seen.contains(rank)) missing.push_back(std::to_string(rank));
  }
  if (several && !missing.empty())
    out.problems.push_back(fmt::format("no file of {} {}: a rank without one is the first suspect",
                                       missing.size() == 1 ? "rank" : "ranks", join_first(missing, 8)));
  if (!several && worst->ranks > 1) out.next.emplace_back("./harness read FILES_OF_ALL_RANKS     # who is behind?");
  return out;
}

}  // namespace harness::evidence
