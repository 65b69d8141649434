#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "evidence/devices.h"

// "node slots=8 [max_slots=8]", "node cpu = 8" (Open MPI, DeepSpeed), "node:8" (MPICH, Intel MPI), "node" alone (a rank
// each line).

namespace harness::evidence {
namespace {

struct Entry {
  std::string host;
  std::int64_t slots = 1;
  bool stated = false;
};

bool is_host_name(std::string_view text) {
  const auto part = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == '@';
  };
  return !text.empty() && text.size() < 254 && std::isalnum(static_cast<unsigned char>(text[0])) != 0 &&
         std::ranges::all_of(text, part);
}

std::optional<Entry> entry_of(std::string_view line) {
  constexpr std::string_view ranks = "slots|cpu|cpus|count",
                             others = "max_slots|max-slots|slots_max|slots-max|max_cpus|max-cpus|port|username";
  std::string joined(line.substr(0, line.find('#')));  // without the blanks around '='
  for (std::size_t at = joined.find('='); at != std::string::npos; at = joined.find('=', at + 1)) {
    while (joined[at + 1] == ' ') joined.erase(at + 1, 1);
    while (at > 0 && joined[at - 1] == ' ') joined.erase(--at, 1);
  }
  const std::vector<std::string_view> words = words_of(joined);
  Entry entry;
  std::string_view host = words.front();
  const auto slots = [&](std::string_view number) {
    const auto value = number_in<std::int64_t>(number);
    if (!value || *value < 0 || *value > 1024) return false;
    entry.slots = *value;
    entry.stated = true;
    return true;
  };
  if (const std::size_t colon = host.rfind(':'); colon != std::string_view::npos) {
    if (!slots(host.substr(colon + 1))) return std::nullopt;
    host = host.substr(0, colon);
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string_view key = words[i].substr(0, equals);
    if (equals == std::string_view::npos ||
        !(is_one_of(ranks, key) ? slots(words[i].substr(equals + 1)) : is_one_of(others, key)))
      return std::nullopt;
  }
  if (!is_host_name(host)) return std::nullopt;
  entry.host = std::string(host);
  return entry;
}

// Nothing if a line is none of a hostfile.
std::optional<std::vector<Entry>> entries_of(std::string_view text) {
  std::vector<Entry> entries;
  constexpr std::size_t most = 1u << 20;
  for (const std::string_view whole : split(text, '\n')) {
    const std::string_view line = trim(whole);
    if (line.empty() || line.starts_with('#')) continue;
    const auto entry = entry_of(line);
    if (!entry || entries.size() >= most) return std::nullopt;
    entries.push_back(*entry);
  }
  return entries;
}

}  // namespace

bool is_hostfile(std::string_view text) {
  const auto entries = entries_of(text);
  if (!entries || entries->empty()) return false;
  // Words alone may be anything: hosts have digits, dots or dashes in their names. "12:30" is a time.
  const auto likely = [](const Entry& entry) {
    const bool named =
        std::ranges::any_of(entry.host, [](unsigned char c) { return std::isalpha(c) != 0 || c == '.'; });
    return named && (entry.stated || entry.host.find_first_of("0123456789.-") != std::string::npos);
  };
  const auto known = [](const Entry& entry) {
    return std::ranges::any_of(entry.host, [](unsigned char c) { return std::isalpha(c) != 0; }) ||
           std::ranges::count(entry.host, '.') == 3;  // an address
  };
  const bool stated = std::ranges::any_of(*entries, &Entry::stated);
  return std::ranges::all_of(*entries, likely) &&
         (stated || (entries->size() > 1 && std::ranges::any_of(*entries, known)));
}

Answer hostfile(std::string_view text) {
  const auto entries = entries_of(text);
  if (!entries || entries->empty()) fail("it is no hostfile");
  std::map<std::string, std::int64_t> slots;
  std::vector<std::string> order;
  std::int64_t ranks = 0;
  for (const Entry& entry : *entries) {
    if (!slots.contains(entry.host)) order.push_back(entry.host);
    slots[entry.host] += entry.slots;
    ranks += entry.slots;
  }
  std::map<std::int64_t, std::int64_t> counts;
  for (const auto& [host, n] : slots) ++counts[n];
  Answer out = Answer::of("hostfile", "hostfile");
  out.fact("hosts", std::ssize(order));
  out.fact("ranks", ranks);
  out.tell("hosts", join_first(order, 4));
  out.headline = fmt::format("{} and {}", plural(std::ssize(order), "host"), plural(ranks, "rank"));
  if (counts.size() > 1) {
    std::vector<std::string> numbers;
    for (const std::string& host : order) {
      if (numbers.size() < 8) numbers.push_back(std::to_string(slots[host]));
    }
    out.problems.push_back(fmt::format("hosts differ: {}{} slots: layouts that keep a group on a node do not fit all",
                                       and_list(numbers), order.size() > numbers.size() ? " …" : ""));
    out.headline += ", not alike";
  }
  out.next.push_back(fmt::format("mpirun -np {} --hostfile HOSTFILE ./harness doctor", ranks));
  return out;
}

}  // namespace harness::evidence
