#pragma once

#include <functional>
#include <map>
#include <vector>

#include "program/builder.h"
#include "workloads/gpt.h"

namespace harness::gpt {

/// Sizes of one pipeline stage's work on one rank.
struct Dimensions {
  std::int64_t rows = 0;  // tokens of a micro-batch
  std::int64_t hidden = 0, heads = 0, head_dim = 0, sequence = 0, micro_batch_size = 0;
  std::int64_t local_hidden = 0, local_ffn = 0, local_vocab = 0;  // this tensor rank's share
  std::int64_t layers = 0, first_layer = 0;
  std::int64_t micro_batches = 0;
  double tokens = 0;  // of the global batch
  int tensor = 1, data = 1, stages = 1, stage = 0;
  DType type = DType::f32;  // of weights and activations in the products
  bool first() const { return stage == 0; }
  bool last() const { return stage == stages - 1; }
};
Dimensions dimensions(const Model& model, const Settings& settings, const Layout& layout, int stage);

/// What the backward pass of one layer needs of its forward pass.
struct LayerActivations {
  View sum1, norm1, mean1, rstd1, qkv, attention, stats, sum2, norm2, mean2, rstd2, fc1_in, fc1_out;
};

/// What the backward pass of one micro-batch needs.
struct MicroBatch {
  std::vector<LayerActivations> layers;
  View last_sum, last_norm, last_mean, last_rstd;  // final norm
  View logits;                                     // holds their gradient after the loss
};

/// Emits the forward and backward pass of one pipeline stage, micro-batch by micro-batch. The exchange with the
/// neighbouring stages is the schedule's business (gpt_schedule.cpp): it gives and takes the views at the border.
class Stage {
 public:
  Stage(ProgramBuilder& builder, const Model& model, const Settings& settings, const Layout& layout, int stage);

  const Dimensions& dims() const { return d_; }
  void emit_init();
  /// Zeroes what the step adds to. First in a step.
  void begin_step();
  /// in: [rows, hidden] from the previous stage (absent on the first). Returns what goes to the next (absent on the
  /// last, where the loss and its gradient are computed instead).
  View forward(int micro_batch, const View& in);
  /// gradient: of what forward() returned (absent on the last stage). Returns that of `in` (absent on the first).
  /// on_final(parameter) is called after a parameter's gradient is complete for the step.
  View backward(int micro_batch, const View& gradient, const std::function<void(const std::string&)>& on_final);
  /// AdamW over everything, then the closing all-reduce of the loss, which waits for all that went before.
  void finish_step(const std::vector<OperationId>& after);

  View activation(const char* name);  // a fresh [rows, hidden]
  const std::vector<Parameter>& parameters() const { return parameters_; }
  View gradient(const Parameter& p) const { return {gradient_.buffer, p.view.offset, p.view.count}; }
  View whole_gradient() const { return gradient_; }
  View gradient(const std::string& name) const;

 private:
  View weight(const std::string& name) const;
  View scratch(const char* name, DType type, std::int64_t count);
  OperationId emit(const Action& action, const char* what, Phase phase);
  void all_reduce_tensor(const View& v, const char* what, Phase phase);
  View embed(int micro_batch);
  void layer_forward(LayerActivations& a, const std::string& prefix);
  void loss(MicroBatch& mb, int micro_batch);
  View layer_backward(const LayerActivations& a, const std::string& prefix, const View& gradient, bool bias_below);
  std::string prefix(std::int64_t layer) const { return "layers." + std::to_string(layer) + "."; }

  ProgramBuilder& b_;
  Dimensions d_;
  std::vector<Parameter> parameters_;
  std::map<std::string, View> place_;  // by name: offset and count
  View master_, weights_, moment1_, moment2_, gradient_, counter_, losses_, tokens_, labels_, learning_rate_, loss_;
  std::vector<MicroBatch> saved_;
  AttentionShape shape_;
  // The running state of the forward pass: what the next norm adds up.
  View in_, residual_;
  std::string bias_;  // name of the bias that belongs to in_, "" if none
  Label at_;          // micro-batch and layer of what is being emitted
  bool accumulate_ = false;
  double deviation_projection_ = 0.02;
};

}  // namespace harness::gpt
