#include "workloads/gpt/parameters.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "workloads/gpt/schedule.h"

namespace harness::gpt {
namespace {

// Every parameter's place in the flat buffers is rounded up to this many elements: 64 bytes of bf16, enough for any
// vector load and for cuBLAS. The usual model widths need no padding.
constexpr std::int64_t parameter_alignment = 32;

// Normal numbers with the deviations of GPT-2 (0.02; residual projections over sqrt(2 L)). Biases and norms are random,
// too, instead of 0 and 1: matrix units draw less power on zeros and run faster, and a gradient check with only zero
// biases checks less.
// Parameters that are added to, or scale, rows of the residual stream have gradients that are sums over these rows:
// partial.
std::vector<Parameter> norm_table(const Model& m, ParameterName gamma, ParameterName beta, const std::string& name) {
  std::vector<Parameter> table{
      {.id = {gamma}, .name = name + ".gamma", .slices = {{.full = m.hidden}}, .mean = 1, .partial = true}};
  if (m.norm == config::NormKind::layer_norm) {
    table.push_back({.id = {beta}, .name = name + ".beta", .slices = {{.full = m.hidden}}, .partial = true});
  }
  return table;
}

std::vector<Parameter> layer_table(const Model& m) {
  const std::int64_t h = m.hidden, f = m.mlp_width(), kv = m.key_width();
  const std::int64_t halves = m.fc1_outputs() / f;
  const double onto_stream = 0.02 / std::sqrt(2.0 * static_cast<double>(m.layers));
  std::vector<Parameter> table;
  const auto norm = [&](ParameterName gamma, ParameterName beta, const std::string& name) {
    for (const Parameter& p : norm_table(m, gamma, beta, name)) table.push_back(p);
  };
  const auto bias = [&](const Parameter& p) {
    if (m.biases) table.push_back(p);
  };
  norm(norm1_gamma, norm1_beta, "norm1");
  // [heads * head_dim][hidden], then keys and values likewise with their heads; split by heads
  table.push_back({.id = {qkv_weight},
                   .name = "qkv.weight",
                   .slices = {{.full = h, .inner = h}, {.outer = 2, .full = kv, .inner = h}},
                   .sharded = true});
  bias({.id = {qkv_bias}, .name = "qkv.bias", .slices = {{.full = h}, {.outer = 2, .full = kv}}, .sharded = true});
  // [hidden][heads * head_dim], split by its input
  table.push_back({.id = {projection_weight},
                   .name = "projection.weight",
                   .slices = {{.outer = h, .full = h}},
                   .sharded = true,
                   .deviation = onto_stream});
  bias({.id = {projection_bias}, .name = "projection.bias", .slices = {{.full = h}}, .partial = true});
  norm(norm2_gamma, norm2_beta, "norm2");
  // [gate, up][ffn][hidden], or without a gate [ffn][hidden]
  table.push_back({.id = {fc1_weight},
                   .name = "fc1.weight",
                   .slices = {{.outer = halves, .full = f, .inner = h}},
                   .sharded = true});
  bias({.id = {fc1_bias}, .name = "fc1.bias", .slices = {{.outer = halves, .full = f}}, .sharded = true});
  table.push_back({.id = {fc2_weight},
                   .name = "fc2.weight",
                   .slices = {{.outer = h, .full = f}},
                   .sharded = true,
                   .deviation = onto_stream});
  bias({.id = {fc2_bias}, .name = "fc2.bias", .slices = {{.full = h}}, .partial = true});
  return table;
}

std::vector<Parameter> embedding_table(const Model& m) {
  std::vector<Parameter> table{{.id = {word_embeddings},
                                .name = "word_embeddings",
                                .slices = {{.full = m.vocab, .inner = m.hidden}},
                                .sharded = true}};
  if (m.positions == config::Positions::learned) {
    table.push_back(
        {.id = {position_embeddings}, .name = "position_embeddings", .slices = {{.full = m.sequence * m.hidden}}});
  }
  return table;
}

std::int64_t elements(const Parameter& p) {
  std::int64_t sum = 0;
  for (const Slice& s : p.slices) sum += s.outer * s.full * s.inner;
  return sum;
}

std::int64_t elements(const std::vector<Parameter>& table) {
  std::int64_t sum = 0;
  for (const Parameter& p : table) sum += elements(p);
  return sum;
}

std::int64_t multiple(std::int64_t count, std::int64_t of) {
  return (count + of - 1) / of * of;
}

// Every bucket is padded to a multiple of this.
std::int64_t bucket_alignment(int shards) {
  return shards > 1 ? shards * parameter_alignment : 1;
}

// bucket_bytes: minimum size of a bucket; 0: a bucket is a layer.
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
    elements += i + 1 < list.size() ? multiple(list[i].count(), parameter_alignment) : list[i].count();
    const bool ends_layer = i == 0 || list[i - 1].id.layer != list[i].id.layer;
    const bool full = bucket_bytes > 0 ? elements * program::size_of(DType::f32) >= bucket_bytes : ends_layer;
    if (alone || full) cut();
  }
}

void place(std::vector<Parameter>& list, int shards) {
  std::int64_t at = 0;
  int bucket = list.front().bucket;
  for (Parameter& p : list) {
    if (p.bucket != bucket) at = multiple(at, bucket_alignment(shards));
    bucket = p.bucket;
    p.view = {-1, at, p.count()};
    at += multiple(p.count(), parameter_alignment);
  }
}

}  // namespace

std::int64_t Parameter::count() const {
  std::int64_t sum = 0;
  for (const Slice& s : slices) sum += s.count();
  return sum;
}

std::vector<Parameter> parameters(const Model& m, const Settings& settings, const Layout& layout, int stage) {
  const std::vector<Chunk> chunks = chunks_of(m, settings, layout, stage);
  const bool first = chunks.front().first, last = chunks.back().last;
  const int ranks = layout[Axis::tensor];
  const bool divides_rows = settings.sequence_parallel && ranks > 1;  // of the residual stream
  std::vector<Parameter> embedding = embedding_table(m);
  const std::vector<Parameter> layer = layer_table(m);
  const std::vector<Parameter> norm = norm_table(m, final_norm_gamma, final_norm_beta, "final_norm");
  const std::int64_t of_embedding = elements(embedding), of_layer = elements(layer);
  const std::int64_t behind_layers = of_embedding + m.layers * of_layer;
  Parameter& table = embedding.front();
  const bool tied = m.tied_embeddings;  // embedding and head share the table
  table.writers = first && last && tied ? 2 : 1;
  table.only_added_to = !last || !tied;
  table.tied = tied && layout[Axis::pipeline] > 1;

  std::vector<Parameter> list;
  // Appends the parameters of a table; their elements have indices in the model from first_index on.
  const auto append = [&](const std::vector<Parameter>& of, std::int64_t first_index, int number = -1) {
    const std::ptrdiff_t begin = std::ssize(list);
    for (Parameter p : of) {
      p.id.layer = number;
      if (number >= 0) p.name = "layers." + std::to_string(number) + "." + p.name;
      p.first_index = first_index;
      first_index += elements(p);
      for (Slice& s : p.slices) s.part = p.sharded ? s.full / ranks : s.full;
      p.partial = p.partial && divides_rows;
      list.push_back(std::move(p));
    }
    // Partial ones come first, because the backward pass completes the gradients of the first norm last.
    std::stable_partition(list.begin() + begin, list.end(), [](const Parameter& p) { return p.partial; });
  };
  if (first) append(embedding, 0);
  for (const Chunk& chunk : chunks) {
    for (int l = chunk.first_layer; l < chunk.end(); ++l) append(layer, of_embedding + l * of_layer, l);
  }
  if (last) append(norm, behind_layers);
  // The head's weight comes last: the backward pass completes its gradient first.
  const Parameter head{
      .id = {head_weight}, .name = "head.weight", .slices = {{.full = m.vocab, .inner = m.hidden}}, .sharded = true};
  if (last && !tied) append({head}, behind_layers + elements(norm));
  if (last && !first && tied) append({table}, 0);
  const int shards = shards_of(settings, layout);
  const bool by_layer = shards > 1 && settings.sharding == config::Sharding::parameters;
  cut_into_buckets(list, by_layer ? 0 : settings.bucket_size_bytes, shards);
  place(list, shards);
  return list;
}

std::vector<View> bucket_places(const std::vector<Parameter>& list, int shards) {
  std::vector<View> places(list.front().bucket + 1);
  std::int64_t end = list.back().view.offset + list.back().view.count;
  for (std::size_t i = list.size(); i-- > 0;) {
    if (i > 0 && list[i - 1].bucket == list[i].bucket) continue;
    const std::int64_t begin = list[i].view.offset;
    places[list[i].bucket] = {-1, begin, multiple(end - begin, bucket_alignment(shards))};
    end = begin;
  }
  return places;
}

OwnRange own_range(const Parameter& parameter, const std::vector<View>& buckets, int shards, const Coordinates& at) {
  const View& bucket = buckets[parameter.bucket];
  const View own = bucket.own_part(Axis::data, shards).on(at);
  const std::int64_t begin = std::max(own.offset, parameter.view.offset),
                     end = std::min(own.offset + own.count, parameter.view.offset + parameter.view.count);
  return {begin, std::max<std::int64_t>(end - begin, 0), bucket.offset / shards + begin - own.offset};
}

int shards_of(const Settings& settings, const Layout& layout) {
  if (settings.sharding == config::Sharding::none || layout[Axis::data] == 1) return 1;
  return settings.sharding_group == config::ShardingGroup::node ? layout.replicas_of_node : layout[Axis::data];
}

bool shards_are_of_node(const Settings& settings, const Layout& layout) {
  const int shards = shards_of(settings, layout);
  return shards > 1 && shards < layout[Axis::data];
}

Parameters::Parameters(ProgramBuilder& builder, const Model& model, const Settings& settings, const Layout& layout,
                       int stage)
    : b_(builder),
      shards_(shards_of(settings, layout)),
      type_(config::storage_of(settings.precision)),
      list_(parameters(model, settings, layout, stage)),
      buckets_(bucket_places(list_, shards_)) {
  for (std::size_t i = 0; i < list_.size(); ++i) index_.emplace(list_[i].id, i);
  // `divided`: the least sharding with which a rank has only its parts.
  const auto flat = [&](const char* name, DType type, config::Sharding divided) {
    const int parts = settings.sharding >= divided ? shards_ : 1;
    return b_.buffer(name, type, whole_count() / parts, BufferKind::persistent);
  };
  using config::Sharding;
  const bool one_copy = type_ == DType::f32;
  master_ = flat("master", DType::f32, one_copy ? Sharding::parameters : Sharding::optimizer);
  weights_ = one_copy ? master_ : flat("weights", type_, Sharding::parameters);
  moment1_ = flat("moment1", DType::f32, Sharding::optimizer);
  moment2_ = flat("moment2", DType::f32, Sharding::optimizer);
  gradient_ = flat(gradient_buffer, DType::f32, Sharding::gradients);
  bucket_weights_.resize(buckets_.size());
  bucket_gradients_.resize(buckets_.size());
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (whole_weights()) bucket_weights_[i] = weights_.part(buckets_[i].offset, buckets_[i].count);
    if (whole_gradients()) bucket_gradients_[i] = gradient_.part(buckets_[i].offset, buckets_[i].count);
  }
}

View Parameters::mine(const View& flat, const View& place) const {
  if (!is_whole(flat)) return flat.part(place.offset / shards_, place.count / shards_);
  return flat.part(place.offset, place.count).own_part(Axis::data, shards_);
}

void Parameters::emit_first_values(const Parameter& p, const View& whole) {
  std::int64_t at = 0, index = p.first_index;
  for (const Slice& s : p.slices) {
    emit(program::Initialize{whole.part(at, s.count()), index, Axis::tensor, s.outer, s.full, s.part, s.inner, p.mean,
                             p.deviation},
         "parameter");
    at += s.count();
    index += s.outer * s.full * s.inner;
  }
}

// Every parameter is initialised whole, so that its values do not depend on which rank will update it.
void Parameters::emit_init() {
  if (is_whole(master_)) {
    emit(program::Fill{master_, 0}, "parameters");
    for (const Parameter& p : list_) emit_first_values(p, master_.part(p.view.offset, p.view.count));
    if (weights_.buffer != master_.buffer) emit(program::Convert{master_, weights_}, "weights");
  } else {
    for (int bucket = 0; bucket < static_cast<int>(buckets_.size()); ++bucket) emit_own_values(bucket);
  }
  for (const View& v : {moment1_, moment2_, gradient_}) emit(program::Fill{v, 0}, "optimizer state");
}

void Parameters::emit_own_values(int bucket) {
  const View values = b_.buffer("first_values", DType::f32, buckets_[bucket].count);
  emit(program::Fill{values, 0}, "parameters");
  for (const Parameter& p : list_) {
    if (p.bucket == bucket) emit_first_values(p, part_of(values, p));
  }
  const View own = values.own_part(Axis::data, shards_);
  emit(program::Convert{own, mine(master_, buckets_[bucket])}, "own part");
  if (weights_.buffer == master_.buffer) return;
  if (whole_weights()) {
    emit(program::Convert{values, weights_of(bucket)}, "weights");
  } else {
    emit(program::Convert{own, mine(weights_, buckets_[bucket])}, "weights");
  }
}

void Parameters::zero_what_is_added_to(Phase phase) {
  for (const Parameter& p : list_) {
    if (!p.only_added_to) continue;
    b_.emit(compute_stream, program::Fill{gradient(p.id), 0}, {"embedding gradient", phase});
  }
}

void Parameters::begin_step() {
  if (whole_gradients()) zero_what_is_added_to(Phase::forward);
}

void Parameters::begin_backward() {
  if (whole_gradients()) return;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    bucket_gradients_[i] = b_.buffer("gradients_of_pass", DType::f32, buckets_[i].count);
  }
  zero_what_is_added_to(Phase::backward);
}

// Only in buffers of own parts are a rank's parts of several buckets adjacent.
std::vector<View> Parameters::updates() const {
  const bool side_by_side = shards_ == 1 || !whole_weights();
  return side_by_side ? std::vector<View>{{-1, 0, whole_count()}} : buckets_;
}

program::AdamW Parameters::update_of(const View& place, const View& finished_steps, const View& learning_rate) const {
  const bool one_copy = weights_.buffer == master_.buffer;
  return {mine(master_, place),
          mine(moment1_, place),
          mine(moment2_, place),
          mine(gradient_, place),
          one_copy ? View{} : mine(weights_, place),
          finished_steps,
          learning_rate};
}

}  // namespace harness::gpt
