#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "workloads/gpt/gpt.h"

namespace harness::gpt {

/// Parameters of a layer, then those at the ends of the model. The table in parameters.cpp defines them and says which
/// of them a model has.
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

/// No model has the parameter ParameterId{}.
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
  View view = {};                     // offset and count in the flat buffers; the buffer is the caller's choice
  std::int64_t first_index = 0;       // index of its first element among all of the model's, for the seeded values
  std::vector<Slice> slices = {};     // consecutive; each slice of a sharded parameter is cut by itself
  bool sharded = false;               // over the tensor axis
  double mean = 0, deviation = 0.02;  // of its normal initial values
  int writers = 1;                    // operations of one backward pass through the model that write its gradient
  bool only_added_to = false;         // all of them add: none replaces the previous step's gradient
  bool tied = false;                  // another stage has it too, with a part of its gradient
  bool partial = false;  // each tensor rank has the part of its gradient from its rows of the residual stream
  int bucket = 0;        // numbered from the end of the flat buffers
  std::int64_t count() const;
};
/// The parameters of a stage in flat order, cut into buckets and placed. Buckets are cut from the end, the order in
/// which the backward pass completes gradients, at parameter boundaries, each with at least bucket_size_bytes of
/// gradients (the last takes the rest). The partial parameters of a layer are adjacent, so that one message sums their
/// gradients; first_index ignores this order.
///
/// If ranks share the optimizer state, each has one part of every bucket, in the order of its coordinate on the data
/// axis, or of its index along it within its node. Buckets are then padded to equal parts that begin where any vector
/// load may, and a tied table has a bucket of its own: both stages that have it cut it into the same parts. If weights
/// are gathered for each pass, a bucket is a layer, or what precedes or follows the layers.
std::vector<Parameter> parameters(const Model& model, const Settings& settings, const Layout& layout,
                                  int pipeline_stage);

/// Returns the place of each bucket of the list in the flat buffers, by number; the caller chooses the buffer.
std::vector<View> bucket_places(const std::vector<Parameter>& list, int shards);

/// The part of a parameter that a rank reduces and updates: elements of the flat buffers, and their place in a buffer
/// of the rank's own parts. Without shards it is all of the parameter, at the same place in both; count is 0 if other
/// ranks have all of it.
struct OwnRange {
  std::int64_t first = 0, count = 0, in_shard = 0;
};
OwnRange own_range(const Parameter& parameter, const std::vector<View>& buckets, int shards, const Coordinates& at);

/// The parameters of a stage with their gradients and optimizer state, in flat persistent buffers of one layout: equal
/// offsets belong together. A state that `shards` ranks divide is in a buffer of that fraction, which holds this rank's
/// parts of all buckets in the same order: the optimizer state, with `gradients` also the gradients, with `parameters`
/// also the weights.
class Parameters {
 public:
  Parameters(ProgramBuilder& builder, const Model& model, const Settings& settings, const Layout& layout,
             int pipeline_stage);

  const std::vector<Parameter>& list() const { return list_; }
  const Parameter& at(ParameterId id) const { return list_[index_.at(id)]; }
  /// Whether the model has it, and on this stage.
  bool has(ParameterId id) const { return index_.contains(id); }
  /// Returns the weight as the products read it; absent, like its gradient, if the model has no such parameter.
  View weight(ParameterId id) const { return in_bucket(id, bucket_weights_); }
  /// Returns the gradient as the products write it: summed over the micro-batches of a step or, if no rank keeps all of
  /// that, of one backward pass.
  View gradient(ParameterId id) const { return in_bucket(id, bucket_gradients_); }

  int shards() const { return shards_; }
  bool whole_weights() const { return is_whole(weights_); }
  bool whole_gradients() const { return is_whole(gradient_); }
  DType weight_type() const { return type_; }
  /// Places of the buckets in a whole buffer, by number.
  const std::vector<View>& buckets() const { return buckets_; }
  View weights_of(int bucket) const { return bucket_weights_[bucket]; }
  View gradients_of(int bucket) const { return bucket_gradients_[bucket]; }
  /// The part of a bucket that this rank updates, and its reduced gradients.
  View own_weights(int bucket) const { return mine(weights_, buckets_[bucket]); }
  View reduced(int bucket) const { return mine(gradient_, buckets_[bucket]); }

  /// Emits the initial values of all buffers.
  void emit_init();
  /// Zeroes the gradients that a step only adds to. Call first in a step.
  void begin_step();
  /// Allocates the gradients of a backward pass if they are not kept longer.
  void begin_backward();
  /// Sets where the weights of a bucket are from now on.
  void set_gathered(int bucket, const View& weights) { bucket_weights_[bucket] = weights; }
  /// Returns places that one update each can take; together they cover everything.
  std::vector<View> updates() const;
  /// Returns the AdamW of this rank's part of a place: of a bucket, or of one of updates().
  program::AdamW update_of(const View& place, const View& finished_steps, const View& learning_rate) const;

 private:
  void zero_what_is_added_to(Phase phase);
  std::int64_t whole_count() const { return buckets_.front().offset + buckets_.front().count; }
  bool is_whole(const View& flat) const { return flat.count == whole_count(); }
  // `places`: of the buckets, by number.
  View in_bucket(ParameterId id, const std::vector<View>& places) const {
    const auto found = index_.find(id);
    if (found == index_.end()) return {};
    const Parameter& p = list_[found->second];
    return part_of(places[p.bucket], p);
  }
  View part_of(const View& bucket, const Parameter& p) const {
    return bucket.part(p.view.offset - buckets_[p.bucket].offset, p.view.count);
  }
  // Returns the part of a place that this rank updates: its part in a whole buffer, or all that a buffer of own parts
  // has of it.
  View mine(const View& flat, const View& place) const;
  // Emits an init operation.
  void emit(const Action& action, const char* what) { b_.emit(compute_stream, action, {what, Phase::setup}); }
  void emit_first_values(const Parameter& parameter, const View& whole);
  void emit_own_values(int bucket);

  ProgramBuilder& b_;
  int shards_;
  DType type_;
  std::vector<Parameter> list_;
  std::vector<View> buckets_;
  std::map<ParameterId, std::size_t> index_;
  View master_, weights_, moment1_, moment2_, gradient_;  // each whole, or of the own parts
  std::vector<View> bucket_weights_, bucket_gradients_;   // as the products read and write them; by number
};

}  // namespace harness::gpt
