#include "config/synonyms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "config/registry.h"

namespace harness::config {
namespace {

constexpr const char* derived_replicas = "it follows: ranks / (tensor_parallel x pipeline_parallel)";
constexpr const char* no_context = "context parallelism is not supported; layout has tensor, pipeline and data ranks";
constexpr const char* no_experts = "mixtures of experts are not supported; a model is dense";
constexpr const char* no_fp8 = "fp8 is not supported; precision is fp32, tf32, bf16 or fp16";

// What a configuration has besides variables, whose own rows say what they are called elsewhere.
constexpr std::array<std::pair<std::string_view, std::string_view>, 38> here{{
    {"num_layers", "model.layers"},
    {"n_layer", "model.layers"},
    {"num_hidden_layers", "model.layers"},
    {"hidden_size", "model.hidden"},
    {"n_embd", "model.hidden"},
    {"d_model", "model.hidden"},
    {"num_attention_heads", "model.heads"},
    {"num_heads", "model.heads"},
    {"n_head", "model.heads"},
    {"vocab_size", "model.vocab"},
    {"padded_vocab_size", "model.vocab"},
    {"seq_length", "model.sequence"},
    {"seq_len", "model.sequence"},
    {"sequence_length", "model.sequence"},
    {"max_position_embeddings", "model.sequence"},
    {"num_query_groups", "model.kv_heads"},
    {"num_key_value_heads", "model.kv_heads"},
    {"n_kv_heads", "model.kv_heads"},
    {"group_query_attention", "model.kv_heads"},
    {"ffn_hidden_size", "model.ffn"},
    {"intermediate_size", "model.ffn"},
    {"swiglu", "model.activation"},
    {"hidden_act", "model.activation"},
    {"normalization", "model.norm"},
    {"position_embedding_type", "model.positions"},
    {"rotary_base", "model.rope_theta"},
    {"untie_embeddings_and_output_weights", "model.tied_embeddings"},
    {"tie_word_embeddings", "model.tied_embeddings"},
    {"disable_bias_linear", "model.biases"},
    {"add_bias_linear", "model.biases"},
    {"train_iters", "measure.steps"},
    {"iterations", "measure.steps"},
    {"iters", "measure.steps"},
    {"repeats", "measure.rounds"},
    {"runs", "measure.rounds"},
    {"warmup_iters", "measure.warmup_steps"},
    {"warmup", "measure.warmup_steps"},
    {"threshold", "measure.smallest_effect"},
}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 20> nowhere{{
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
}};
// All words of what there is nothing of.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> beginnings{
    {{"moe", no_experts}, {"expert", no_experts}, {"mixture_of_experts", no_experts}, {"num_experts", no_experts}}};

std::string lower_words(std::string_view key) {
  while (key.starts_with('-')) key.remove_prefix(1);
  std::string word = lower(key);
  std::ranges::replace(word, '-', '_');
  return word;
}

}  // namespace

std::string known_elsewhere_as(std::string_view key) {
  const std::string word = lower_words(key);
  for (const Variable& variable : registry()) {
    if (std::ranges::find(variable.parts, word) != variable.parts.end() && variable.name == "layout")
      return fmt::format("it is a part of {0}: {0}: {{{1}: 2}}", variable.name, word);
    for (const Synonym& synonym : variable.synonyms) {
      if (synonym.word == word) return "here it is " + (synonym.here.empty() ? variable.name : synonym.here);
    }
  }
  for (const auto& [name, answer] : here) {
    if (name == word) return "here it is " + std::string(answer);
  }
  return nothing_like(key);
}

std::string nothing_like(std::string_view word) {
  const std::string key = lower_words(word);
  for (const auto& [name, answer] : nowhere) {
    if (name == key) return std::string(answer);
  }
  for (const auto& [beginning, answer] : beginnings) {
    if (key.starts_with(beginning)) return std::string(answer);
  }
  return "";
}

}  // namespace harness::config
