#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "config/settings.h"
#include "program/builder.h"

namespace harness::gpt {

/// The parameters of a layer, then those at the ends of the model. parameters.cpp has the table of what they are, and
/// which of them a model has.
enum ParameterName : std::uint8_t {
  norm1_gamma,
  norm1_beta,
  qkv_weight,
  qkv_bias,
  projection_weight,
  projection_bias,
  norm2_gamma,
  norm2_beta,
  fc1_weight,
  fc1_bias,
  fc2_weight,
  fc2_bias,
  word_embeddings,
  position_embeddings,
  final_norm_gamma,
  final_norm_beta,
  head_weight
};

struct ParameterId {
  ParameterName name = {};
  int layer = -1;                                        // of the model; -1: of no layer
  auto operator<=>(const ParameterId&) const = default;  // NOLINT(modernize-use-nullptr): 14 misreads it
};

/// A tensor [outer, full, inner] and this rank's shard of it, as in Initialize.
struct Slice {
  std::int64_t outer = 1, full = 1, inner = 1;
  std::int64_t part = 1;  // of full
  std::int64_t count() const { return outer * part * inner; }
};

/// A parameter inside the flat persistent buffers "master" (f32 values) and "gradient" (f32, after reduction).
struct Parameter {
  ParameterId id = {};
  std::string name = {};              // "layers.3.qkv.weight"
  program::View view = {};            // offset and count in the flat buffers; the buffer is the caller's choice
  std::int64_t first_index = 0;       // of its first element among all parameters of the model, which the seed numbers
  std::vector<Slice> slices = {};     // one behind the other: of what is sharded, each is cut by itself
  bool sharded = false;               // over the tensor axis
  double mean = 0, deviation = 0.02;  // of the normal numbers that it begins with
  int writers = 1;                    // operations of one backward pass through the model that write its gradient
  bool only_added_to = false;         // none of them replaces the gradient of the step before
  bool tied = false;                  // another stage has it too, and a part of its gradient
  bool partial = false;  // each tensor rank has a part of its gradient, that of its rows of the residual stream
  int bucket = 0;        // from the end of the flat buffers
  std::int64_t count() const;
};
/// The parameters of a stage in flat order, cut into buckets and placed. Buckets are cut from the end, the order in
/// which the backward pass completes gradients, at parameter borders, each at least bucket_size_bytes of gradients (the
/// last takes what is left). The partial ones of a layer lie side by side, so that one message sums their gradients up;
/// first_index knows nothing of it.
std::vector<Parameter> parameters(const config::Model& model, const config::Settings& settings,
                                  const program::Layout& layout, int pipeline_stage);

/// The parameters of a stage with their gradients and the state of the optimizer, in flat persistent buffers of one
/// layout: what stands at an offset in one of them belongs to what stands there in the others.
class Parameters {
 public:
  Parameters(program::ProgramBuilder& builder, const config::Model& model, const config::Settings& settings,
             const program::Layout& layout, int pipeline_stage);

  const std::vector<Parameter>& list() const { return list_; }
  const Parameter& at(ParameterId id) const { return list_[index_.at(id)]; }
  /// Whether the model has it, and on this stage.
  bool has(ParameterId id) const { return index_.contains(id); }
  /// As the products read it.
  program::View weight(ParameterId id) const { return in_buffer(weights_, id); }
  program::View gradient(ParameterId id) const { return in_buffer(gradient_, id); }
  program::View whole_gradient() const { return gradient_; }

  /// Emits the first values of all buffers.
  void emit_init();
  /// Zeroes the gradients that a step only adds to. First in a step.
  void begin_step();
  /// AdamW of the parameters whose gradients these are: any part of whole_gradient().
  program::AdamW update_of(const program::View& gradients, const program::View& finished_steps,
                           const program::View& learning_rate) const;

 private:
  program::View in_buffer(const program::View& flat, ParameterId id) const;

  program::ProgramBuilder& b_;
  std::vector<Parameter> list_;
  std::map<ParameterId, std::size_t> index_;
  program::View master_, weights_, moment1_, moment2_, gradient_;
};

}  // namespace harness::gpt
