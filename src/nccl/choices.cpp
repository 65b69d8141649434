#include "nccl/choices.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace harness::nccl {
namespace {

using Words = std::vector<std::string>;

const Words functions{"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};
const Words algorithms{"Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
const Words protocols{"LL", "LL128", "Simple"};

// The index of `word` among `words`, whatever its capitals. `whole` is the value it stands in, for the message.
std::size_t index_of(std::string_view word, const Words& words, std::string_view kind, std::string_view whole) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (same_word(word, words[i])) return i;
  }
  const std::string inside = word == trim(whole) ? std::string() : fmt::format(" in {}", quote(whole));
  fail("found {}{}; {}: {}{}", quote(word), inside, kind, join(words, ", "), did_you_mean(nearest(word, words)));
}

std::string canonical(std::string_view text, const Words& elements, std::string_view kind, std::string_view example) {
  const std::string_view whole = trim(text);
  if (same_word(whole, "default")) return "default";
  if (whole.empty()) fail("found ''; write default to leave the choice to NCCL, or a value such as {}", example);
  std::string out;
  std::set<std::size_t> seen_functions;
  bool first = true;
  for (std::string_view entry : split(whole, ';')) {
    entry = trim(entry);
    if (entry.empty()) fail("found an empty entry in {}; expected a value such as {}", quote(whole), example);
    if (!first) out += ';';
    if (const auto colon = entry.find(':'); colon != std::string_view::npos) {
      const auto f = index_of(trim(entry.substr(0, colon)), functions, "allowed before ':'", whole);
      if (!seen_functions.insert(f).second) {
        fail("found {} twice in {}; NCCL would silently drop the first of the two", functions[f], quote(whole));
      }
      out += functions[f] + ":";
      entry = trim(entry.substr(colon + 1));
    } else if (!first) {
      fail("found {} without a function in {}; only the first entry may omit it; expected a value such as {}",
           quote(entry), quote(whole), example);
    }
    first = false;
    if (entry.starts_with('^')) {
      out += '^';
      entry = trim(entry.substr(1));
    }
    std::set<std::size_t> seen;
    for (const std::string_view element : split(entry, ',')) {
      const auto e = index_of(trim(element), elements, kind, whole);
      if (!seen.insert(e).second) fail("found {} twice in {}; write it once", elements[e], quote(whole));
    }
    Words names;
    for (const std::size_t e : seen) names.push_back(elements[e]);
    out += join(names, ",");
  }
  return out;
}

// `value` is canonical.
Choices choices(std::string_view value, const Words& elements) {
  Choices chosen;
  for (const std::string& function : functions) chosen[function] = elements;
  if (value == "default") return chosen;
  for (std::string_view entry : split(value, ';')) {
    const auto colon = entry.find(':');
    const std::string_view function = colon == std::string_view::npos ? std::string_view() : entry.substr(0, colon);
    if (colon != std::string_view::npos) entry.remove_prefix(colon + 1);
    const bool all_but = entry.starts_with('^');
    if (all_but) entry.remove_prefix(1);
    const auto named = split(entry, ',');
    Words left;
    for (const std::string& element : elements) {
      if ((std::ranges::find(named, element) != named.end()) != all_but) left.push_back(element);
    }
    for (auto& [name, allowed] : chosen) {
      if (function.empty() || function == name) allowed = left;
    }
  }
  return chosen;
}

}  // namespace

std::string canonical_algo(std::string_view text) {
  return canonical(text, algorithms, "allowed, besides default", "'Ring' or 'AllReduce:Tree,Ring;AllGather:Ring'");
}

std::string canonical_proto(std::string_view text) {
  return canonical(text, protocols, "allowed, besides default", "'Simple' or 'AllReduce:LL128,Simple'");
}

Choices algo_choices(std::string_view text) {
  return choices(canonical_algo(text), algorithms);
}
Choices proto_choices(std::string_view text) {
  return choices(canonical_proto(text), protocols);
}

}  // namespace harness::nccl
