#include "config/synonyms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/text.h"
#include "config/missing.h"
#include "config/registry.h"
#include "nccl/names.h"

namespace harness::config {
namespace {

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

}  // namespace

std::string known_elsewhere_as(std::string_view key) {
  const std::string word = key_words(key);
  for (const Variable& variable : registry()) {
    if (!variable.environment_name.empty() && lower(variable.environment_name) == word)
      return "here it is " + variable.name;
    if (std::ranges::find(variable.parts, word) != variable.parts.end() && variable.name == "layout")
      return fmt::format("it is a part of {0}: {0}: {{{1}: 2}}", variable.name, word);
    for (const Synonym& synonym : variable.synonyms) {
      if (synonym.word == word) return "here it is " + (synonym.here.empty() ? variable.name : synonym.here);
    }
  }
  for (const auto& [name, answer] : here) {
    if (name == word) return "here it is " + std::string(answer);
  }
  std::string nccl_name = word;
  std::ranges::transform(nccl_name, nccl_name.begin(), [](unsigned char c) { return std::toupper(c); });
  if (nccl::knows(nccl_name)) return fmt::format("it is a variable of NCCL: env: {{{}: VALUE}}", nccl_name);
  return nothing_like(key);
}

}  // namespace harness::config
