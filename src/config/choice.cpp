#include "config/choice.h"

#include <algorithm>

namespace harness::config {
namespace {

constexpr const char* no_experts = "mixtures of experts are not supported; a model is dense";

constexpr std::array<Hint, 5> nowhere{{
    {"it follows: ranks / (tensor_parallel x pipeline_parallel)",
     "data_parallel data_parallel_size data_parallel_degree data_parallel_replicate_degree dp dp_size"},
    {"it follows from the ranks, and `sharding` says what is sharded over them", "data_parallel_shard_degree"},
    {"a step trains with AdamW; nothing chooses another optimizer", "optimizer optimizer_name optimizer_type optim"},
    {no_experts, "num_local_experts ep ep_size"},
    {"zero-bubble schedules are not supported; pipeline_schedule is 1f1b, gpipe or interleaved",
     "enable_zero_bubble zero_bubble"},
}};
constexpr std::array<std::string_view, 4> beginnings_of_experts{"moe", "expert", "mixture_of_experts", "num_experts"};

}  // namespace

std::string key_words(std::string_view key) {
  while (key.starts_with('-')) key.remove_prefix(1);
  std::string word = lower(key);
  std::ranges::replace(word, '-', '_');
  return word;
}

std::string_view answer_of(std::span<const Hint> hints, std::string_view word) {
  for (const Hint& hint : hints) {
    const std::vector<std::string_view> names = split(hint.names, ' ');
    if (std::ranges::find(names, word) != names.end()) return hint.answer;
  }
  return "";
}

std::size_t word_index(std::string_view text, std::span<const std::string> words) {
  const auto found = std::ranges::find(words, text);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  if (const std::string why = nothing_like(text); !why.empty()) fail("found {}; {}", quote(text), why);
  fail("found {}; allowed: {}{}", quote(text), join(words, ", "), did_you_mean(nearest(text, words)));
}

std::string nothing_like(std::string_view word) {
  const std::string key = key_words(word);
  if (starts_with_any(key, beginnings_of_experts)) return no_experts;
  return std::string(answer_of(nowhere, key));
}

}  // namespace harness::config
