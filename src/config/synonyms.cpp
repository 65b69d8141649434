#include "config/synonyms.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "config/registry.h"

namespace harness::config {
namespace {

constexpr const char* derived_replicas = "it follows: ranks / (tensor_parallel x pipeline_parallel)";
constexpr const char* no_such_parallelism = "harness has tensor, pipeline and data parallelism (layout)";

// What a configuration has besides variables, whose own rows say what they are called elsewhere.
constexpr std::array<std::pair<std::string_view, std::string_view>, 37> here{{
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

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> nowhere{{
    {"data_parallel_size", derived_replicas},
    {"dp", derived_replicas},
    {"context_parallel_size", no_such_parallelism},
    {"expert_model_parallel_size", no_such_parallelism},
}};

}  // namespace

std::string known_elsewhere_as(std::string_view key) {
  while (key.starts_with('-')) key.remove_prefix(1);
  std::string word = lower(key);
  std::ranges::replace(word, '-', '_');
  for (const Variable& variable : registry()) {
    for (const Synonym& synonym : variable.synonyms) {
      if (synonym.word == word) return "here it is " + (synonym.here.empty() ? variable.name : synonym.here);
    }
  }
  for (const auto& [name, answer] : here) {
    if (name == word) return "here it is " + std::string(answer);
  }
  for (const auto& [name, answer] : nowhere) {
    if (name == word) return std::string(answer);
  }
  return "";
}

}  // namespace harness::config
