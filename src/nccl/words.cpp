#include "nccl/words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

namespace harness::nccl {
namespace {

template <std::size_t N>
std::string numbered(std::string_view word, const std::array<std::string_view, N>& names) {
  std::size_t number = N;
  TextCursor cursor{word};
  if (cursor.integer(number) && cursor.rest.empty() && number < N) return std::string(names[number]);
  return std::string(word);
}

}  // namespace

// Numbers until 2.23 (src/include/nccl_common.h), capitals from 2.24 (ncclAlgoToString).
std::string algorithm_name(std::string_view word) {
  static constexpr std::array<std::string_view, 7> names = {"Tree",     "Ring", "CollNetDirect", "CollNetChain", "NVLS",
                                                            "NVLSTree", "PAT"};
  static const std::map<std::string_view, std::string_view> capitals = {{"TREE", "Tree"},
                                                                        {"RING", "Ring"},
                                                                        {"COLLNET_DIRECT", "CollNetDirect"},
                                                                        {"COLLNET_CHAIN", "CollNetChain"},
                                                                        {"NVLS_TREE", "NVLSTree"}};
  const auto found = capitals.find(word);
  return found == capitals.end() ? numbered(word, names) : std::string(found->second);
}

std::string protocol_name(std::string_view word) {
  static constexpr std::array<std::string_view, 3> names = {"LL", "LL128", "Simple"};
  return word == "SIMPLE" ? "Simple" : numbered(word, names);
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

std::vector<std::string> split_text(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + separator.size());
  }
  return parts;
}

}  // namespace harness::nccl
