#pragma once

#include <cstdint>
#include <string>

#include "base/name_values.h"

namespace harness::config {

/// GPT-2/GPT-3 style decoder. hidden is a multiple of heads; the MLP is 4 * hidden wide; embeddings are tied.
struct Model {
  std::string name;  // preset name or "custom"
  std::int64_t layers = 0, hidden = 0, heads = 0, vocab = 0, sequence = 0;
  std::int64_t head_dim() const { return hidden / heads; }
  std::int64_t ffn() const { return 4 * hidden; }
  bool operator==(const Model&) const = default;
};

/// What a number of the model is called: in a configuration, in a result file and in JSON.
struct ModelKey {
  const char* name;
  const char* help;    // one line, for people
  bool later = false;  // older result files do not have it
};

/// Calls each(key, value) for all of the model but its name, in the order in which people meet them. Whoever reads,
/// writes, sends, compares or shows a model goes through these rows, so that none of them can miss one.
template <class AnyModel, class Each>  // AnyModel: Model, const or not
void each_key(AnyModel& model, Each&& each) {
  each(ModelKey{"layers", "transformer layers"}, model.layers);
  each(ModelKey{"hidden", "width of the residual stream; the MLP is four times as wide"}, model.hidden);
  each(ModelKey{"heads", "attention heads; they divide hidden"}, model.heads);
  each(ModelKey{"vocab", "tokens of the vocabulary"}, model.vocab);
  each(ModelKey{"sequence", "tokens of a sequence"}, model.sequence);
}

/// All of that as text, by key.
NameValues texts_of(const Model& model);

/// "2 layers, hidden 192, 4 heads, vocab 2048, sequence 128".
std::string in_words(const Model& model);

}  // namespace harness::config
