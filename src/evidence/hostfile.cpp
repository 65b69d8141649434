// Hostfiles: "node slots=8 [max_slots=8]" (Open MPI, DeepSpeed), "node:8" (MPICH, Intel MPI), "node" alone (one rank
// per line).
#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "evidence/devices.h"

namespace harness::evidence {
namespace {

struct Entry {
  std::string host;
  std::optional<std::int64_t> slots = {};  // absent: one
};

bool is_host_name(std::string_view text) {
  return !text.empty() && text.size() < 254 && std::isalnum(static_cast<unsigned char>(text[0])) != 0 &&
         has_only(text, ".-_@") &&
         std::ranges::any_of(text, [](unsigned char c) { return std::isalpha(c) != 0 || c == '.'; });  // "12:30"
}

std::optional<Entry> entry_of(std::string_view line) {
  const std::vector<std::string_view> words = words_of(line.substr(0, line.find('#')));
  const std::size_t colon = words.front().rfind(':');
  Entry entry{.host = std::string(words.front().substr(0, colon))};
  std::vector<std::string_view> numbers;
  if (colon != std::string_view::npos) numbers.push_back(words.front().substr(colon + 1));
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view key = words[i].substr(0, words[i].find('='));
    if (key.size() == words[i].size() || !is_one_of("slots|max_slots|max-slots|port", key)) return std::nullopt;
    if (key == "slots") numbers.push_back(words[i].substr(key.size() + 1));
  }
  for (const std::string_view number : numbers) {
    entry.slots = number_in<std::int64_t>(number);
    if (!entry.slots || *entry.slots < 0 || *entry.slots > 1024) return std::nullopt;
  }
  return is_host_name(entry.host) ? std::optional(entry) : std::nullopt;
}

// Returns nothing if any line does not belong to a hostfile.
std::vector<Entry> entries_of(std::string_view text) {
  std::vector<Entry> entries;
  constexpr std::size_t most = 1u << 20;
  for (const std::string_view whole : split(text, '\n')) {
    const std::string_view line = trim(whole);
    if (line.empty() || line.starts_with('#')) continue;
    const auto entry = entry_of(line);
    if (!entry || entries.size() >= most) return {};
    entries.push_back(*entry);
  }
  return entries;
}

}  // namespace

bool is_hostfile(std::string_view text) {
  const std::vector<Entry> entries = entries_of(text);
  // Single words are ambiguous: host names contain digits, dots or dashes, and addresses three dots.
  const auto likely = [](const Entry& entry) {
    const bool word = std::ranges::any_of(entry.host, [](unsigned char c) { return std::isalpha(c) != 0; });
    return entry.slots || (word ? entry.host.find_first_of("0123456789.-") != std::string::npos
                                : std::ranges::count(entry.host, '.') == 3);
  };
  const bool stated = std::ranges::any_of(entries, [](const Entry& entry) { return entry.slots.has_value(); });
  return std::ranges::all_of(entries, likely) && entries.size() > (stated ? 0 : 1);
}

Answer hostfile(std::string_view text) {
  std::map<std::string, std::int64_t> slots;
  std::vector<std::string> order, numbers;
  std::set<std::int64_t> counts;
  std::int64_t ranks = 0;
  for (const Entry& entry : entries_of(text)) {
    if (entry.slots == 0) continue;  // a host that is taken out
    if (!slots.contains(entry.host)) order.push_back(entry.host);
    slots[entry.host] += entry.slots.value_or(1);
    ranks += entry.slots.value_or(1);
  }
  if (order.empty()) fail("it is no hostfile with a slot for a rank");
  for (const std::string& host : order) {
    counts.insert(slots[host]);
    if (numbers.size() < 8) numbers.push_back(std::to_string(slots[host]));
  }
  Answer out = Answer::of("hostfile", "hostfile");
  out.fact("hosts", std::ssize(order));
  out.fact("ranks", ranks);
  out.tell("hosts", join_first(order, 4));
  out.headline = fmt::format("{} and {}", plural(std::ssize(order), "host"), plural(ranks, "rank"));
  if (counts.size() > 1) {
    say(out.problems, "hosts differ: {} slots: layouts that keep a group on a node do not fit all", and_list(numbers));
    out.headline += ", not alike";
  }
  say(out.next, "mpirun -np {} --hostfile HOSTFILE ./harness doctor", ranks);
  return out;
}

}  // namespace harness::evidence
