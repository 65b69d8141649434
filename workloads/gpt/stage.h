#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "workloads/gpt/buckets.h"
#include "workloads/gpt/gathers.h"
#include "workloads/gpt/schedule.h"

namespace harness::gpt {

/// Sizes of one pipeline stage's work on one rank.
struct Dimensions {
  Model model;  // resolved
  Settings settings;
  std::int64_t rows = 0;      // tokens of a micro-batch: rows of products, attention and logits
  std::int64_t own_rows = 0;  // rows of the residual stream on this rank: rows of norms and at a stage's border
  std::int64_t hidden = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t sequence = 0;                                      // tokens of a sequence that this rank has
  std::int64_t local_hidden = 0, local_ffn = 0, local_vocab = 0;  // this tensor rank's share, as are heads and kv_heads
  std::int64_t fc1_outputs = 0;                                   // also this rank's share
  int micro_batches = 0;
  double tokens = 0;           // of the global batch, which divide the loss; 1 if an input of the step divides it
  std::int64_t documents = 0;  // of Attention
  double unseen = 0;           // of Attention
  int tensor = 1;
  DType type = DType::f32;    // of weights and activations in the products
  bool fp8 = false;           // the products of a layer take their factors in 8-bit floats
  bool block_scales = false;  // with a scale per block instead of per tensor
  bool divides_rows() const { return own_rows < rows; }
  std::int64_t key_width() const { return kv_heads * head_dim; }
  std::int64_t qkv_width() const { return local_hidden + 2 * key_width(); }
};
Dimensions dimensions(const Model& model, const Settings& settings, const Layout& layout);

/// y = x W^T, W [outputs, inputs] as sharded on this rank.
struct Linear {
  const char* name;
  std::int64_t inputs, outputs;
  const char *input_gradient, *weight_gradient;  // labels
  ParameterName weight;
};

struct Norm {
  const char* name;
  ParameterName gamma, beta;
};
inline constexpr Norm norm1{"norm1", norm1_gamma, norm1_beta};
inline constexpr Norm norm2{"norm2", norm2_gamma, norm2_beta};
inline constexpr Norm final_norm{"final_norm", final_norm_gamma, final_norm_beta};

/// A tensor in 8-bit floats, plain and transposed, each present if a product reads it.
struct Quantised {
  View plain, transposed, scale, scale_transposed;
};

/// The residual stream: x, or the sum that a norm has yet to compute, x + bias + residual.
struct ResidualStream {
  View x, bias = {}, residual = {};
  bool is_sum() const { return !residual.present(); }
};

/// Emits the passes of one pipeline stage. gpt.cpp emits the exchange with the neighbouring stages and hands over the
/// views at the border.
class Stage {
 public:
  Stage(ProgramBuilder& builder, const Parameters& parameters, Gathers& gathers, const LossScaler& scaler,
        const StepFrame& frame, const Model& model, const Settings& settings, const Layout& layout, int stage);

  const Chunk& chunk(int number) const { return chunks_[number]; }
  /// in: [own_rows, hidden] from the previous chunk (absent in the first). Returns the input of the next chunk (absent
  /// in the last, which computes the loss and its gradient instead).
  View forward(const Pass& pass, const View& in);
  /// gradient: of what forward() returned (absent in the last chunk). Returns the gradient of `in` (absent in the
  /// first). Calls on_final(parameter) for each operation that wrote the parameter's gradient: in a last pass, or in
  /// all passes if they do not accumulate their gradients.
  View backward(const Pass& pass, const View& gradient, const std::function<void(ParameterId)>& on_final);

  /// Emits one operation in place of a pass, or two for a pass that begins before its input is there.
  View folded(const Pass& pass, const View& in);

  View activation(std::string name);  // a fresh [own_rows, hidden]

 private:
  // Set the pass or layer that is being emitted, for the labels and for the parameters of the layer; -1: none.
  void enter(const Pass& pass);
  void enter_layer(int layer) { at_.layer = layer; }
  void use_layer(int layer);  // enters it and uses its weights
  // Views of parameters that the model lacks are absent: biases, beta, positions.
  ParameterId of_layer(ParameterName name) const { return {name, at_.layer}; }
  View weight(ParameterName name) const { return parameters_.weight(of_layer(name)); }
  View gradient(ParameterId id) const { return parameters_.gradient(id); }
  View gradient(ParameterName name) const { return gradient(of_layer(name)); }
  View scratch(std::string name, DType type, std::int64_t count) { return b_.buffer(std::move(name), type, count); }
  View floats(std::string name, std::int64_t count) { return scratch(std::move(name), DType::f32, count); }
  // Queries, keys and values lie side by side in every row.
  View columns_of(const View& qkv, std::int64_t first, std::int64_t width) const;
  View queries(const View& qkv) const { return columns_of(qkv, 0, d_.local_hidden); }
  View keys(const View& qkv) const { return columns_of(qkv, d_.local_hidden, d_.key_width()); }
  View values(const View& qkv) const { return columns_of(qkv, d_.local_hidden + d_.key_width(), d_.key_width()); }
  program::Shard vocabulary() const { return {Axis::tensor, d_.local_vocab}; }
  Label label(const char* what) const;
  void emit(const Action& action, const char* what = "") { b_.emit(compute_stream, action, label(what)); }
  // Returns the current micro-batch's part of an input; absent if the input is.
  View of_micro_batch(const View& input) const {
    if (!input.present()) return {};
    return input.part(pass_.micro_batch * d_.rows, d_.rows);
  }
  // Operations emitted from now on read weights of the bucket that has this parameter.
  void use(ParameterId id) { gathers_.use(parameters_.at(id).bucket); }
  // Whether the pass adds to gradients of the passes before it.
  bool adds() const { return !pass_.first && parameters_.whole_gradients(); }
  // Records that the last emitted operation writes these gradients, as far as the model has them.
  void wrote(std::initializer_list<ParameterId> gradients);
  void tell(const std::function<void(ParameterId)>& on_final);

  // Forward parts of a layer: each emits its operation and returns the place of the result.
  View linear(const View& x, const Linear& layer, const View& bias = {}, const View& add = {},
              const View& before_gelu = {});
  // Factors of products in 8-bit floats (fp8.cpp). A tensor is quantised at most once in each orientation.
  bool in_fp8(const Linear& layer) const { return d_.fp8 && &layer != &head_; }
  enum class Wanted : std::uint8_t { plain, transposed, both };
  const Quantised& quantised_input(const View& x, const Linear& layer, Wanted wanted);
  const Quantised& quantised_weight(const Linear& layer, Wanted wanted);
  // Also yields the gradient of the bias.
  const Quantised& quantised_gradient(const View& dy, const Linear& layer, ParameterId bias = {});
  const Quantised& quantise(Quantised& known, program::Quantise op, DType type, Wanted wanted, const char* what);
  // Applies the rotary embedding to queries and keys if the model has it; backward, to their gradients.
  void rotate(const View& qkv, bool backward);
  View attention(LayerActivations& a);
  View into_mlp(LayerActivations& a);  // fc1 and the activation
  ResidualStream onto_stream(const View& x, const Linear& layer, const View& bias, const View& residual);
  Normalised normalise(const ResidualStream& stream, const Norm& norm);
  // Over the tensor axis, for rows of the residual stream. scatter_rows: partial sums [rows, hidden] -> the sum,
  // [own_rows, hidden]. gather_rows: [own_rows, hidden] -> [rows, hidden].
  View scatter_rows(const View& v, const char* what);
  View gather_rows(const View& v, const char* what);
  View embed();
  ResidualStream layer_forward(LayerActivations& a, const ResidualStream& x);
  // Returns a bias that the next layer's norm adds: a copy, if the next layer may have taken the room of this layer's
  // weights by then.
  View lasting(const View& weight);
  void loss(MicroBatch& mb);

  // Recomputation: whether the layer runs again, what its forward pass keeps, and what its backward pass gets from
  // that.
  bool recomputes_layer() const;
  LayerActivations kept(const LayerActivations& a) const;
  LayerActivations restored(const LayerActivations& kept);

  // Backward: `dy` is the gradient of a part's result; returns the gradient of its input.
  View input_gradient(const View& dy, const Linear& layer, const View& before_gelu = {});
  void weight_gradient(const View& dy, const Linear& layer, const View& x, ParameterId bias = {});
  View mlp_backward(const LayerActivations& a, const View& dy);  // to fc1's output
  View attention_backward(const LayerActivations& a, const View& dy);
  View norm_backward(const View& dy, const Normalised& x, const Norm& norm, const View& dresidual, ParameterId bias);
  View head_backward(const MicroBatch& mb, ParameterId bias);
  View layer_backward(const LayerActivations& a, const View& dy, ParameterId bias_below);
  void embed_backward(const View& dy);

  ProgramBuilder& b_;
  const Parameters& parameters_;
  Gathers& gathers_;
  const LossScaler& scaler_;
  const StepFrame& frame_;
  Dimensions d_;
  Linear qkv_, projection_, fc1_, fc2_, head_;
  program::AttentionShape shape_;
  View tokens_, labels_;
  View position_ids_, loss_scale_;  // present with packed documents; with documents
  std::vector<Chunk> chunks_;
  std::map<program::BufferId, Quantised> quantised_;  // activations and their gradients
  std::map<ParameterId, Quantised> quantised_weights_;
  Pass pass_;     // being emitted
  Label at_;      // its micro-batch, layer and phase
  Label folded_;  // of the previous pass, and its result; absent: it was not folded
  View folded_result_;
  std::vector<ParameterId> wrote_;  // parameters whose final gradients are not reported to on_final() yet
};

}  // namespace harness::gpt
