#include "config/missing.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace harness::config {
namespace {

constexpr const char* derived_replicas = "it follows: ranks / (tensor_parallel x pipeline_parallel)";
constexpr const char* no_context = "context parallelism is not supported; layout has tensor, pipeline and data ranks";
constexpr const char* no_experts = "mixtures of experts are not supported; a model is dense";
constexpr const char* no_zero_bubble =
    "zero-bubble schedules are not supported; pipeline_schedule is 1f1b, gpipe or interleaved";
constexpr const char* no_fp8 = "fp8 is not supported; precision is fp32, tf32, bf16 or fp16";

constexpr std::array<std::pair<std::string_view, std::string_view>, 22> nowhere{{
    {"data_parallel", derived_replicas},
    {"data_parallel_size", derived_replicas},
    {"data_parallel_degree", derived_replicas},
    {"data_parallel_replicate_degree", derived_replicas},
    {"data_parallel_shard_degree", "it follows from the ranks, and `sharding` says what is sharded over them"},
    {"dp", derived_replicas},
    {"dp_size", derived_replicas},
    {"context_parallel", no_context},
    {"context_parallel_size", no_context},
    {"context_parallel_degree", no_context},
    {"cp", no_context},
    {"cp_size", no_context},
    {"num_experts", no_experts},
    {"num_local_experts", no_experts},
    {"ep", no_experts},
    {"ep_size", no_experts},
    {"fp8", no_fp8},
    {"fp8_format", no_fp8},
    {"fp8_recipe", no_fp8},
    {"enable_fp8", no_fp8},
    {"enable_zero_bubble", no_zero_bubble},
    {"zero_bubble", no_zero_bubble},
}};
// All words that begin so.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> beginnings{
    {{"moe", no_experts}, {"expert", no_experts}, {"mixture_of_experts", no_experts}, {"num_experts", no_experts}}};

}  // namespace

std::string key_words(std::string_view key) {
  while (key.starts_with('-')) key.remove_prefix(1);
  std::string word = lower(key);
  std::ranges::replace(word, '-', '_');
  return word;
}

std::string nothing_like(std::string_view word) {
  const std::string key = key_words(word);
  for (const auto& [name, answer] : nowhere) {
    if (name == key) return std::string(answer);
  }
  for (const auto& [beginning, answer] : beginnings) {
    if (key.starts_with(beginning)) return std::string(answer);
  }
  return "";
}

}  // namespace harness::config
