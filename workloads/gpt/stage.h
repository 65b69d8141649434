#pragma once

#include <functional>
#include <map>
#include <vector>

#include "program/builder.h"
#include "workloads/gpt/gpt.h"

namespace harness::gpt {

/// Sizes of one pipeline stage's work on one rank.
struct Dimensions {
  std::int64_t rows = 0;  // tokens of a micro-batch
  std::int64_t hidden = 0, heads = 0, head_dim = 0, sequence = 0, micro_batch_size = 0;
  std::int64_t local_hidden = 0, local_ffn = 0, local_vocab = 0;  // this tensor rank's share
  int layers = 0, first_layer = 0;
  int micro_batches = 0;
  double tokens = 0;  // of the global batch
  int tensor = 1, data = 1, stages = 1, stage = 0;
  program::DType type = program::DType::f32;  // of weights and activations in the products
  bool first() const { return stage == 0; }
  bool last() const { return stage == stages - 1; }
};
Dimensions dimensions(const config::Model& model, const config::Settings& settings, const program::Layout& layout,
                      int stage);

/// y = x W^T, W [outputs, inputs] as sharded on this rank.
struct Linear {
  const char* name;
  std::int64_t inputs, outputs;
  const char *input_gradient, *weight_gradient;  // labels
  const char* tied_to = nullptr;                 // the parameter that is W, if it is not the layer's "NAME.weight"
  std::string weight() const { return tied_to != nullptr ? tied_to : name + std::string(".weight"); }
  std::string bias() const { return name + std::string(".bias"); }
};

/// The residual stream: x, or what a norm has still to add up, x + bias + residual.
struct ResidualStream {
  program::View x, bias = {}, residual = {};
  bool is_sum() const { return !residual.present(); }
};

/// A normalised stream and what the backward pass of the norm needs; `sum` is the stream that was normalised.
struct Normalised {
  program::View sum, out, mean, rstd;
};

/// What the backward pass of one layer needs of its forward pass.
struct LayerActivations {
  Normalised norm1, norm2;
  program::View qkv, attention, stats, fc1_before_gelu, fc1;
};

/// What the backward pass of one micro-batch needs.
struct MicroBatch {
  std::vector<LayerActivations> layers;
  Normalised final_norm;
  program::View logits;  // hold their gradient after the loss
};

/// Emits the forward and backward pass of one pipeline stage, micro-batch by micro-batch. The exchange with the
/// neighbouring stages is emitted in gpt.cpp, which gives and takes the views at the border.
class Stage {
 public:
  Stage(program::ProgramBuilder& builder, const config::Model& model, const config::Settings& settings,
        const program::Layout& layout, int stage);

  const Dimensions& dims() const { return d_; }
  void emit_init();
  /// Zeroes what the step adds to. First in a step.
  void begin_step();
  /// in: [rows, hidden] from the previous stage (absent on the first). Returns what goes to the next (absent on the
  /// last, where the loss and its gradient are computed instead).
  program::View forward(int micro_batch, const program::View& in);
  /// gradient: of what forward() returned (absent on the last stage). Returns that of `in` (absent on the first).
  /// on_final(parameter) is called after a parameter's gradient is complete for the step.
  program::View backward(int micro_batch, const program::View& gradient,
                         const std::function<void(const std::string&)>& on_final);
  /// AdamW of the parameters whose gradients these are: any part of whole_gradient().
  program::AdamW update_of(const program::View& gradients) const;
  void finish_step() { frame_.end_step(); }

  program::View activation(std::string name);  // a fresh [rows, hidden]
  const std::vector<Parameter>& parameters() const { return parameters_; }
  program::View whole_gradient() const { return gradient_; }
  /// Of a parameter by its whole name, as in parameters().
  program::View gradient_of(const std::string& parameter) const { return in_buffer(gradient_, parameter); }

 private:
  // What is being emitted: for the labels, and for the layer whose parameters weight() and gradient() name; -1: none.
  void enter(program::Phase phase, int micro_batch = -1, int layer = -1);
  static std::string prefix(int layer) { return layer < 0 ? "" : "layers." + std::to_string(layer) + "."; }
  program::View weight(const std::string& name) const { return in_buffer(weights_, prefix(at_.layer) + name); }
  program::View gradient(const std::string& name) const { return in_buffer(gradient_, prefix(at_.layer) + name); }
  program::View in_buffer(const program::View& flat, const std::string& parameter) const;
  program::View scratch(std::string name, program::DType type, std::int64_t count) {
    return b_.buffer(std::move(name), type, count);
  }
  program::View row_values(std::string name, std::int64_t for_each_row = 1) {
    return scratch(std::move(name), program::DType::f32, d_.rows * for_each_row);
  }
  // Queries, keys and values lie side by side in every row.
  program::View third_of(const program::View& qkv, int which) const;
  program::View queries(const program::View& qkv) const { return third_of(qkv, 0); }
  program::View keys(const program::View& qkv) const { return third_of(qkv, 1); }
  program::View values(const program::View& qkv) const { return third_of(qkv, 2); }
  program::Shard vocabulary() const { return {program::Axis::tensor, d_.local_vocab}; }
  program::Label label(const char* what) const;
  void emit(const program::Action& action, const char* what = "") {
    b_.emit(workloads::compute_stream, action, label(what));
  }

  // The parts of a layer, forward: each emits its operation and returns where the result is.
  program::View linear(const program::View& x, const Linear& layer, const program::View& bias = {},
                       const program::View& add = {});
  program::View linear_gelu(const program::View& x, const Linear& layer, const program::View& bias,
                            program::View& before_gelu);
  program::View attention(LayerActivations& a);
  ResidualStream onto_stream(const program::View& x, const Linear& layer, const program::View& residual);
  Normalised layer_norm(const ResidualStream& stream, const char* name);
  program::View sum_over_tensor(const program::View& v, const char* what,
                                program::Reduction reduction = program::Reduction::sum);  // in place; returns v
  program::View embed(int micro_batch);
  ResidualStream layer_forward(LayerActivations& a, const ResidualStream& x);
  void loss(MicroBatch& mb, int micro_batch);

  // Backward: `dy` is the gradient of a part's result, what is returned that of its input.
  program::View input_gradient(const program::View& dy, const Linear& layer, const program::View& before_gelu = {});
  void weight_gradient(const program::View& dy, const Linear& layer, const program::View& x,
                       const program::View& dbias = {});
  program::View attention_backward(const LayerActivations& a, const program::View& dy);
  program::View layer_norm_backward(const program::View& dy, const Normalised& norm, const char* name,
                                    const program::View& dresidual, const program::View& dbias);
  program::View head_backward(const MicroBatch& mb, const program::View& dbias);
  program::View layer_backward(const LayerActivations& a, const program::View& dy, const program::View& dbias_below);
  void embed_backward(int micro_batch, const program::View& dy);

  program::ProgramBuilder& b_;
  Dimensions d_;
  Linear qkv_, projection_, fc1_, fc2_, head_;
  program::AttentionShape shape_;
  std::vector<Parameter> parameters_;
  std::map<std::string, program::View> place_;  // by name: offset and count
  program::View master_, weights_, moment1_, moment2_, gradient_, tokens_, labels_, learning_rate_;
  workloads::StepFrame frame_;
  std::map<int, MicroBatch> saved_;  // by its number
  program::Label at_;                // micro-batch, layer and phase of what is being emitted
  bool accumulate_ = false;          // gradients are added to those of earlier micro-batches
  double deviation_projection_ = 0.02;
};

}  // namespace harness::gpt
