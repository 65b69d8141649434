#include "base/text.h"
#include "config/experiment.h"
#include "config/model.h"

namespace harness::config {

std::string in_words(const Model& m) {
  std::string words = fmt::format("{}, hidden {}, {}, vocab {}, sequence {}", plural(m.layers, "layer"), m.hidden,
                                  plural(m.heads, "head"), m.vocab, m.sequence);
  const Model here = m.resolved();
  const Model as_gpt2 = Model{m.name, m.layers, m.hidden, m.heads, m.vocab, m.sequence}.resolved();
  if (here.kv_heads != as_gpt2.kv_heads) words += fmt::format(", {}", plural(here.kv_heads, "kv_head"));
  if (here.ffn != as_gpt2.ffn) words += fmt::format(", ffn {}", here.ffn);
  if (here.activation != as_gpt2.activation) words += fmt::format(", {}", word_of(here.activation, activations));
  if (here.norm != as_gpt2.norm) words += fmt::format(", {}", word_of(here.norm, norms));
  if (here.positions != as_gpt2.positions) words += fmt::format(", rotary (theta {})", here.rope_theta);
  if (here.tied_embeddings != as_gpt2.tied_embeddings) words += ", untied embeddings";
  if (here.biases != as_gpt2.biases) words += ", no biases";
  return words;
}

NameValues megatron_flags(const Model& model) {
  const Model m = model.resolved();
  NameValues flags;
  const auto number = [&](const char* name, auto value) { flags.emplace_back(name, fmt::format("{}", value)); };
  const auto word = [&](const char* name, const char* value) { flags.emplace_back(name, value); };
  number("--num-layers", m.layers);
  number("--hidden-size", m.hidden);
  number("--ffn-hidden-size", m.ffn);
  number("--num-attention-heads", m.heads);
  if (m.kv_heads != m.heads) {
    word("--group-query-attention", "");
    number("--num-query-groups", m.kv_heads);
  }
  number("--seq-length", m.sequence);
  number("--max-position-embeddings", m.sequence);
  if (m.activation == Activation::swiglu) word("--swiglu", "");
  word("--normalization", m.norm == NormKind::rms_norm ? "RMSNorm" : "LayerNorm");
  const bool rotary = m.positions == Positions::rotary;
  word("--position-embedding-type", rotary ? "rope" : "learned_absolute");
  if (rotary) number("--rotary-base", static_cast<std::int64_t>(m.rope_theta));
  if (!m.tied_embeddings) word("--untie-embeddings-and-output-weights", "");
  if (!m.biases) word("--disable-bias-linear", "");
  return flags;
}

}  // namespace harness::config
