#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "config/choice.h"

namespace harness::config {

/// The activation between the two GEMMs of an MLP. gelu: the tanh form, on fc1's output. swiglu (Shazeer 2020, arXiv
/// 2002.05202): silu(gate) * up on the two halves of fc1's output, which is then twice as wide as the MLP.
enum class Activation : std::uint8_t { gelu, swiglu };
inline constexpr std::array<Choice<Activation>, 2> activations{
    {{"gelu", Activation::gelu}, {"swiglu", Activation::swiglu}}};
/// rms_norm (Zhang and Sennrich 2019, arXiv 1910.07467) subtracts no mean and has no beta.
enum class NormKind : std::uint8_t { layer_norm, rms_norm };
inline constexpr std::array<Choice<NormKind>, 2> norms{
    {{"layer_norm", NormKind::layer_norm}, {"rms_norm", NormKind::rms_norm}}};
/// learned: a table that the embedding adds. rotary (Su et al. 2021, arXiv 2104.09864): queries and keys are rotated.
enum class Positions : std::uint8_t { learned, rotary };
inline constexpr std::array<Choice<Positions>, 2> positions{
    {{"learned", Positions::learned}, {"rotary", Positions::rotary}}};

/// The words of each enum, by type.
inline constexpr const auto& words_for(Activation) {
  return activations;
}
inline constexpr const auto& words_for(NormKind) {
  return norms;
}
inline constexpr const auto& words_for(Positions) {
  return positions;
}

/// A pre-norm decoder. The defaults are GPT-2's. hidden is a multiple of heads, and heads of kv_heads; with rotary
/// positions the width of a head is even.
struct Model {
  std::string name;  // preset name or "custom"
  std::int64_t layers = 0, hidden = 0, heads = 0, vocab = 0, sequence = 0;
  std::int64_t kv_heads = 0;  // key/value heads, each shared by heads / kv_heads query heads; 0: as many as heads
  std::int64_t ffn = 0;       // width of the MLP; 0: 4 * hidden
  Activation activation = Activation::gelu;
  NormKind norm = NormKind::layer_norm;
  Positions positions = Positions::learned;
  double rope_theta = 0;        // base of rotary positions; 0: 10000
  bool tied_embeddings = true;  // the head's weight is the embedding's table
  bool biases = true;           // in the four GEMMs of a layer

  std::int64_t head_dim() const { return hidden / heads; }
  std::int64_t key_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  std::int64_t key_width() const { return key_heads() * head_dim(); }
  std::int64_t mlp_width() const { return ffn > 0 ? ffn : 4 * hidden; }
  std::int64_t fc1_outputs() const { return activation == Activation::swiglu ? 2 * mlp_width() : mlp_width(); }
  /// Returns the model with each 0 replaced by its derived value and unused values cleared, so that equal models
  /// compare equal.
  Model resolved() const;
  bool operator==(const Model&) const = default;
};

/// "gpt3-125m" … "gpt3-175b" (Brown et al. 2020, table 2.1; vocabulary 50304 = 50257 padded to a multiple of 128)
/// and "llama3-8b" … (Grattafiori et al. 2024, table 3).
std::optional<Model> model_preset(std::string_view name);
std::vector<std::string> model_preset_names();

/// The name of one value of the model: in a configuration, in a result file and in JSON.
struct ModelKey {
  const char* name;
  const char* help;          // one line
  const char* otherwise;     // the default, as shown to users
  bool first_models = true;  // required in every model
};

/// Calls each(key, value) for every value of the model but its name, in display order. All code that reads, writes,
/// sends, compares or shows a model uses these rows, so that none can miss a value.
template <class AnyModel, class Each>  // AnyModel: Model, const or not
void each_key(AnyModel& model, Each&& each) {
  const char* as_preset = "the preset's";
  each(ModelKey{"layers", "transformer layers", as_preset}, model.layers);
  each(ModelKey{"hidden", "width of the residual stream", as_preset}, model.hidden);
  each(ModelKey{"heads", "attention heads; they divide hidden", as_preset}, model.heads);
  each(ModelKey{"vocab", "tokens of the vocabulary", as_preset}, model.vocab);
  each(ModelKey{"sequence", "tokens of a sequence", as_preset}, model.sequence);
  each(ModelKey{"kv_heads", "heads of keys and values (grouped-query attention); they divide heads", "heads", false},
       model.kv_heads);
  each(ModelKey{"ffn", "width of the MLP", "4 * hidden", false}, model.ffn);
  each(ModelKey{"activation", "of the MLP; swiglu has a gate, a third matrix of this width", "gelu", false},
       model.activation);
  each(ModelKey{"norm", "of the residual stream", "layer_norm", false}, model.norm);
  each(ModelKey{"positions", "a learned table, or queries and keys that are turned (RoPE)", "learned", false},
       model.positions);
  each(ModelKey{"rope_theta", "base of the angles of rotary positions", "10000", false}, model.rope_theta);
  each(ModelKey{"tied_embeddings", "the head shares the embedding's table", "true", false}, model.tied_embeddings);
  each(ModelKey{"biases", "of the products of a layer", "true", false}, model.biases);
}

/// Two incompatible values of a model, or all of them.
struct ModelProblem {
  const char* key;     // the one to change; "": no single one
  const char* or_key;  // the other, or ""
  std::string text;    // the message
};
/// Returns the impossible combinations of values. Skips unknown values (0).
std::vector<ModelProblem> problems_of(const Model& model);
/// Returns the first error of an unchecked model, such as one from a file: a value out of bounds, or the first of
/// problems_of(). "" if there is none.
std::string why_impossible(const Model& model);

/// Returns the divisors of `number` nearest to `wrong`, for a message: "4", or "2 or 4" if it lies between them.
std::string nearest_divisors(std::int64_t number, std::int64_t wrong);

/// Returns the values of a model as text, by key, including derived ones.
NameValues texts_of(const Model& model);

/// "2 layers, hidden 192, 4 heads, vocab 2048, sequence 128", then what differs from GPT-2: "8 kv_heads, swiglu".
std::string in_words(const Model& model);

}  // namespace harness::config
