#include "workloads/gpt/parameters.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "workloads/gpt/chunk.h"
#include "workloads/gpt/gpt.h"
#include "workloads/step.h"

namespace harness::gpt {
namespace {

// Elements to which every parameter's place in the flat buffers is rounded up: 64 bytes of bf16, enough for any vector
// load and for cuBLAS. With the usual model widths nothing is lost to it.
constexpr std::int64_t parameter_alignment = 32;

// Normal numbers with the deviations of GPT-2 (0.02; residual projections over sqrt(2 L)). Biases and norms are drawn
// too instead of set to 0 and 1: matrix units draw less power on zeros and run faster, and a gradient check that meets
// only zero biases checks less.
// Those that are added to, or scale, rows of the residual stream have gradients that are sums over these rows: partial.
std::vector<Parameter> layer_table(const config::Model& m) {
  const std::int64_t h = m.hidden, f = m.ffn();
  const double onto_stream = 0.02 / std::sqrt(2.0 * static_cast<double>(m.layers));
  return {
      {.id = {norm1_gamma}, .name = "norm1.gamma", .full = h, .mean = 1, .partial = true},
      {.id = {norm1_beta}, .name = "norm1.beta", .full = h, .partial = true},
      // [q, k, v][heads * head_dim][hidden], split by heads
      {.id = {qkv_weight}, .name = "qkv.weight", .outer = 3, .full = h, .inner = h, .sharded = true},
      {.id = {qkv_bias}, .name = "qkv.bias", .outer = 3, .full = h, .sharded = true},
      // [hidden][heads * head_dim], split by its input
      {.id = {projection_weight},
       .name = "projection.weight",
       .outer = h,
       .full = h,
       .sharded = true,
       .deviation = onto_stream},
      {.id = {projection_bias}, .name = "projection.bias", .full = h, .partial = true},
      {.id = {norm2_gamma}, .name = "norm2.gamma", .full = h, .mean = 1, .partial = true},
      {.id = {norm2_beta}, .name = "norm2.beta", .full = h, .partial = true},
      {.id = {fc1_weight}, .name = "fc1.weight", .full = f, .inner = h, .sharded = true},
      {.id = {fc1_bias}, .name = "fc1.bias", .full = f, .sharded = true},
      {.id = {fc2_weight}, .name = "fc2.weight", .outer = h, .full = f, .sharded = true, .deviation = onto_stream},
      {.id = {fc2_bias}, .name = "fc2.bias", .full = h, .partial = true},
  };
}

std::vector<Parameter> embedding_table(const config::Model& m) {
  return {{.id = {word_embeddings}, .name = "word_embeddings", .full = m.vocab, .inner = m.hidden, .sharded = true},
          {.id = {position_embeddings}, .name = "position_embeddings", .full = m.sequence * m.hidden}};
}

std::vector<Parameter> final_norm_table(const config::Model& m) {
  return {{.id = {final_norm_gamma}, .name = "final_norm.gamma", .full = m.hidden, .mean = 1, .partial = true},
          {.id = {final_norm_beta}, .name = "final_norm.beta", .full = m.hidden, .partial = true}};
}

std::int64_t elements(const std::vector<Parameter>& table) {
  std::int64_t sum = 0;
  for (const Parameter& p : table) sum += p.outer * p.full * p.inner;
  return sum;
}

// How the tensor ranks divide a stage.
struct TensorParallel {
  int ranks;
  bool divides_rows;  // of the residual stream: sequence parallelism
};

// Appends the parameters of a table, whose elements the model numbers from first_index on.
void append(std::vector<Parameter>& list, const std::vector<Parameter>& table, std::int64_t first_index,
            const TensorParallel& tensor, int layer = -1) {
  const std::ptrdiff_t begin = std::ssize(list);
  for (Parameter p : table) {
    p.id.layer = layer;
    if (layer >= 0) p.name = "layers." + std::to_string(layer) + "." + p.name;
    p.first_index = first_index;
    first_index += p.outer * p.full * p.inner;
    p.part = p.sharded ? p.full / tensor.ranks : p.full;
    p.partial = p.partial && tensor.divides_rows;
    list.push_back(std::move(p));
  }
  // In front, for the backward pass completes the gradients of the first norm last.
  std::stable_partition(list.begin() + begin, list.end(), [](const Parameter& p) { return p.partial; });
}

std::int64_t multiple(std::int64_t count, std::int64_t of) {
  return (count + of - 1) / of * of;
}

std::int64_t aligned(std::int64_t count) {
  return multiple(count, parameter_alignment);
}

// What every bucket is filled up to a multiple of.
std::int64_t bucket_alignment(int shards) {
  return shards > 1 ? shards * parameter_alignment : 1;
}

void cut_into_buckets(std::vector<Parameter>& list, std::int64_t bucket_bytes, int shards) {
  int bucket = 0;
  std::int64_t elements = 0;
  const auto cut = [&] {
    if (elements > 0) ++bucket;
    elements = 0;
  };
  for (std::size_t i = list.size(); i-- > 0;) {
    const bool alone = list[i].tied && shards > 1;
    if (alone) cut();
    list[i].bucket = bucket;
    elements += i + 1 < list.size() ? aligned(list[i].count()) : list[i].count();
    if (alone || elements * program::size_of(program::DType::f32) >= bucket_bytes) cut();
  }
}

void place(std::vector<Parameter>& list, int shards) {
  std::int64_t at = 0;
  int bucket = list.front().bucket;
  for (Parameter& p : list) {
    if (p.bucket != bucket) at = multiple(at, bucket_alignment(shards));
    bucket = p.bucket;
    p.view = {-1, at, p.count()};
    at += aligned(p.count());
  }
}

}  // namespace

std::vector<Parameter> parameters(const config::Model& m, const config::Settings& settings,
                                  const program::Layout& layout, int stage) {
  const std::vector<Chunk> chunks = chunks_of(m, layout, stage, settings.chunks_of_stage());
  const bool first = chunks.front().first, last = chunks.back().last;
  const int ranks = layout[program::Axis::tensor];
  const TensorParallel tensor{ranks, settings.sequence_parallel && ranks > 1};
  std::vector<Parameter> embedding = embedding_table(m);
  const std::vector<Parameter> layer = layer_table(m);
  const std::int64_t of_embedding = elements(embedding), of_layer = elements(layer);
  // Embedding and head share the table.
  Parameter& table = embedding.front();
  table.writers = first && last ? 2 : 1;
  table.only_added_to = !last;
  table.tied = layout[program::Axis::pipeline] > 1;

  std::vector<Parameter> list;
  if (first) append(list, embedding, 0, tensor);
  for (const Chunk& chunk : chunks) {
    for (int l = chunk.first_layer; l < chunk.end(); ++l) {
      append(list, layer, of_embedding + l * of_layer, tensor, l);
    }
  }
  if (last) append(list, final_norm_table(m), of_embedding + m.layers * of_layer, tensor);
  // The head's copy stands last: its gradient is the first to be complete in the backward pass.
  if (last && !first) append(list, {table}, 0, tensor);
  const int shards = shards_of(settings, layout);
  cut_into_buckets(list, settings.bucket_size_bytes, shards);
  place(list, shards);
  return list;
}

std::vector<program::View> bucket_places(const std::vector<Parameter>& list, int shards) {
  std::vector<program::View> places(list.front().bucket + 1);
  std::int64_t end = list.back().view.offset + list.back().view.count;
  for (std::size_t i = list.size(); i-- > 0;) {
    if (i > 0 && list[i - 1].bucket == list[i].bucket) continue;
    const std::int64_t begin = list[i].view.offset;
    places[list[i].bucket] = {-1, begin, multiple(end - begin, bucket_alignment(shards))};
    end = begin;
  }
  return places;
}

OwnRange own_range(const Parameter& parameter, const std::vector<program::View>& buckets, int shards,
                   const program::Coordinates& at) {
  const program::View& bucket = buckets[parameter.bucket];
  const program::View own = bucket.own_part(program::Axis::data, shards).on(at);
  const std::int64_t begin = std::max(own.offset, parameter.view.offset),
                     end = std::min(own.offset + own.count, parameter.view.offset + parameter.view.count);
  return {begin, std::max<std::int64_t>(end - begin, 0), bucket.offset / shards + begin - own.offset};
}

int shards_of(const config::Settings& settings, const program::Layout& layout) {
  return settings.sharding == config::Sharding::none ? 1 : layout[program::Axis::data];
}

Parameters::Parameters(program::ProgramBuilder& builder, const config::Model& model, const config::Settings& settings,
                       const program::Layout& layout, int stage)
    : b_(builder),
      shards_(shards_of(settings, layout)),
      list_(parameters(model, settings, layout, stage)),
      buckets_(bucket_places(list_, shards_)) {
  for (std::size_t i = 0; i < list_.size(); ++i) index_.emplace(list_[i].id, i);
  const auto flat = [&](const char* name, program::DType type, int parts = 1) {
    const std::int64_t whole = buckets_.front().offset + buckets_.front().count;
    return b_.buffer(name, type, whole / parts, program::BufferKind::persistent);
  };
  const program::DType type = config::storage_of(settings.precision);
  const bool one_copy = type == program::DType::f32;
  master_ = flat("master", program::DType::f32, one_copy ? 1 : shards_);
  weights_ = one_copy ? master_ : flat("weights", type);
  moment1_ = flat("moment1", program::DType::f32, shards_);
  moment2_ = flat("moment2", program::DType::f32, shards_);
  gradient_ = flat(gradient_buffer, program::DType::f32);
}

program::View Parameters::in_buffer(const program::View& flat, ParameterId id) const {
  const program::View& place = at(id).view;
  return flat.part(place.offset, place.count);
}

void Parameters::emit_init() {
  const auto emit = [&](const program::Action& action, const char* what) {
    b_.emit(workloads::compute_stream, action, {what, program::Phase::setup});
  };
  // Every parameter begins whole, so that its first values do not depend on who will update it.
  const bool divided = master_.count < weights_.count;
  const program::View& values = divided ? gradient_ : master_;
  emit(program::Fill{values, 0}, "parameters");
  for (const Parameter& p : list_) {
    emit(program::Initialize{in_buffer(values, p.id), p.first_index, program::Axis::tensor, p.outer, p.full, p.part,
                             p.inner, p.mean, p.deviation},
         "parameter");
  }
  if (weights_.buffer != values.buffer) emit(program::Convert{values, weights_}, "weights");
  for (std::size_t i = 0; divided && i < buckets_.size(); ++i) {
    emit(program::Convert{own(gradients_of(static_cast<int>(i))), shard(master_, buckets_[i])}, "own part");
  }
  for (const program::View& v : {moment1_, moment2_, gradient_}) emit(program::Fill{v, 0}, "optimizer state");
}

void Parameters::begin_step() {
  for (const Parameter& p : list_) {
    if (!p.only_added_to) continue;
    b_.emit(workloads::compute_stream, program::Fill{gradient(p.id), 0},
            {"embedding gradient", program::Phase::forward});
  }
}

program::AdamW Parameters::update_of(const program::View& gradients, const program::View& finished_steps,
                                     const program::View& learning_rate) const {
  const program::View weights = own(weights_.part(gradients.offset, gradients.count));
  const bool one_copy = weights_.buffer == master_.buffer;
  return {one_copy ? weights : shard(master_, gradients),
          shard(moment1_, gradients),
          shard(moment2_, gradients),
          own(gradients),
          one_copy ? program::View{} : weights,
          finished_steps,
          learning_rate};
}

}  // namespace harness::gpt
