#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "config/settings.h"
#include "program/builder.h"

namespace harness::gpt {

/// The parameters of a layer, then those at the ends of the model. parameters.cpp has the table of what they are.
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
  final_norm_beta
};

struct ParameterId {
  ParameterName name = {};
  int layer = -1;                                        // of the model; -1: of no layer
  auto operator<=>(const ParameterId&) const = default;  // NOLINT(modernize-use-nullptr): 14 misreads it
};

/// A parameter inside the flat persistent buffers "master" (f32 values) and "gradient" (f32, after reduction).
struct Parameter {
  ParameterId id = {};
  std::string name = {};         // "layers.3.qkv.weight"
  program::View view = {};       // offset and count in the flat buffers; the buffer is the caller's choice
  std::int64_t first_index = 0;  // of its first element among all parameters of the model, which the seed numbers
  std::int64_t outer = 1, full = 1, part = 1, inner = 1;  // the global tensor and this shard, as in Initialize
  bool sharded = false;                                   // over the tensor axis
  double mean = 0, deviation = 0.02;                      // of the normal numbers that it begins with
  int writers = 1;             // operations of one backward pass through the model that write its gradient
  bool only_added_to = false;  // none of them replaces the gradient of the step before
  bool tied = false;           // another stage has it too, and a part of its gradient
  bool partial = false;        // each tensor rank has a part of its gradient, that of its rows of the residual stream
  int bucket = 0;              // from the end of the flat buffers
  std::int64_t count() const { return outer * part * inner; }
};
/// The parameters of a stage in flat order, cut into buckets and placed. Buckets are cut from the end, the order in
/// which the backward pass completes gradients, at parameter borders, each at least bucket_size_bytes of gradients (the
/// last takes what is left). The partial ones of a layer lie side by side, so that one message sums their gradients up;
/// first_index knows nothing of it.
///
/// Where ranks share the state of the optimizer, each has one part of every bucket, in the order of its coordinate on
/// the data axis. Buckets are then filled up to equal parts that begin where any vector load may, and a tied table is
/// alone in its bucket: both stages that have it cut it into the same parts.
std::vector<Parameter> parameters(const config::Model& model, const config::Settings& settings,
                                  const program::Layout& layout, int pipeline_stage);

/// Where each bucket of the list lies in the flat buffers, by number; the buffer is the caller's choice.
std::vector<program::View> bucket_places(const std::vector<Parameter>& list, int shards);

/// What a rank reduces and updates of a parameter: elements of the flat buffers, and where they lie in a buffer of the
/// rank's own parts. Without shards all of it, at the same place in both; count is 0 where other ranks have all.
struct OwnRange {
  std::int64_t first = 0, count = 0, in_shard = 0;
};
OwnRange own_range(const Parameter& parameter, const std::vector<program::View>& buckets, int shards,
                   const program::Coordinates& at);

/// The parameters of a stage with their gradients and the state of the optimizer, in flat persistent buffers of one
/// layout: what stands at an offset in one of them belongs to what stands there in the others. Of what `shards` ranks
/// divide, this one has its parts of all buckets in a buffer of that fraction, one behind the other in the same order.
class Parameters {
 public:
  Parameters(program::ProgramBuilder& builder, const config::Model& model, const config::Settings& settings,
             const program::Layout& layout, int pipeline_stage);

  const std::vector<Parameter>& list() const { return list_; }
  const Parameter& at(ParameterId id) const { return list_[index_.at(id)]; }
  /// As the products read it.
  program::View weight(ParameterId id) const { return in_buffer(weights_, id); }
  program::View gradient(ParameterId id) const { return in_buffer(gradient_, id); }
  program::View whole_gradient() const { return gradient_; }
  int shards() const { return shards_; }
  /// By number of the bucket.
  const std::vector<program::View>& buckets() const { return buckets_; }
  program::View weights_of(int bucket) const { return in_bucket(weights_, bucket); }
  program::View gradients_of(int bucket) const { return in_bucket(gradient_, bucket); }
  /// Of a view into a buffer that every rank has whole: the part that this rank reduces and updates.
  program::View own(const program::View& whole) const { return whole.own_part(program::Axis::data, shards_); }

  /// Emits the first values of all buffers.
  void emit_init();
  /// Zeroes the gradients that a step only adds to. First in a step.
  void begin_step();
  /// AdamW of the parameters whose gradients these are: a bucket, and without shards any part of whole_gradient(). Of
  /// shards it is that of the own part.
  program::AdamW update_of(const program::View& gradients, const program::View& finished_steps,
                           const program::View& learning_rate) const;

 private:
  program::View in_buffer(const program::View& flat, ParameterId id) const;
  program::View in_bucket(const program::View& flat, int bucket) const {
    return flat.part(buckets_[bucket].offset, buckets_[bucket].count);
  }
  // What this rank has of `place`, in a buffer of the own parts.
  program::View shard(const program::View& buffer, const program::View& place) const {
    return buffer.part(place.offset / shards_, place.count / shards_);
  }

  program::ProgramBuilder& b_;
  int shards_;
  std::vector<Parameter> list_;
  std::vector<program::View> buckets_;
  std::map<ParameterId, std::size_t> index_;
  // Whole: weights and gradients. Own parts: the moments, and the master weights where they are a buffer of their own.
  program::View master_, weights_, moment1_, moment2_, gradient_;
};

}  // namespace harness::gpt
