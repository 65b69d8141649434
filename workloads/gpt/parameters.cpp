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
std::vector<Parameter> norm_table(const config::Model& m, ParameterName gamma, ParameterName beta,
                                  const std::string& name) {
  std::vector<Parameter> table{
      {.id = {gamma}, .name = name + ".gamma", .slices = {{.full = m.hidden}}, .mean = 1, .partial = true}};
  if (m.norm == config::NormKind::layer_norm) {
    table.push_back({.id = {beta}, .name = name + ".beta", .slices = {{.full = m.hidden}}, .partial = true});
  }
  return table;
}

std::vector<Parameter> layer_table(const config::Model& m) {
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
  // [heads * head_dim][hidden], then the same of keys and of values with their heads, split by heads
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

std::vector<Parameter> embedding_table(const config::Model& m) {
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

std::vector<Parameter> final_norm_table(const config::Model& m) {
  return norm_table(m, final_norm_gamma, final_norm_beta, "final_norm");
}

std::vector<Parameter> head_table(const config::Model& m) {
  return {
      {.id = {head_weight}, .name = "head.weight", .slices = {{.full = m.vocab, .inner = m.hidden}}, .sharded = true}};
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
    first_index += elements(p);
    for (Slice& s : p.slices) s.part = p.sharded ? s.full / tensor.ranks : s.full;
    p.partial = p.partial && tensor.divides_rows;
    list.push_back(std::move(p));
  }
  // In front, for the backward pass completes the gradients of the first norm last.
  std::stable_partition(list.begin() + begin, list.end(), [](const Parameter& p) { return p.partial; });
}

std::int64_t aligned(std::int64_t count) {
  return (count + parameter_alignment - 1) / parameter_alignment * parameter_alignment;
}

void cut_into_buckets(std::vector<Parameter>& list, std::int64_t bucket_bytes) {
  int bucket = 0;
  std::int64_t elements = 0;
  for (std::size_t i = list.size(); i-- > 0;) {
    list[i].bucket = bucket;
    elements += i + 1 < list.size() ? aligned(list[i].count()) : list[i].count();
    if (elements * program::size_of(program::DType::f32) < bucket_bytes) continue;
    ++bucket;
    elements = 0;
  }
}

void place(std::vector<Parameter>& list) {
  std::int64_t at = 0;
  for (Parameter& p : list) {
    p.view = {-1, at, p.count()};
    at += aligned(p.count());
  }
}

}  // namespace

std::int64_t Parameter::count() const {
  std::int64_t sum = 0;
  for (const Slice& s : slices) sum += s.count();
  return sum;
}

std::vector<Parameter> parameters(const config::Model& m, const config::Settings& settings,
                                  const program::Layout& layout, int stage) {
  const std::vector<Chunk> chunks = chunks_of(m, layout, stage, settings.chunks_of_stage());
  const bool first = chunks.front().first, last = chunks.back().last;
  const int ranks = layout[program::Axis::tensor];
  const TensorParallel tensor{ranks, settings.sequence_parallel && ranks > 1};
  std::vector<Parameter> embedding = embedding_table(m);
  const std::vector<Parameter> layer = layer_table(m);
  const std::vector<Parameter> norm = final_norm_table(m);
  const std::int64_t of_embedding = elements(embedding), of_layer = elements(layer);
  const std::int64_t behind_layers = of_embedding + m.layers * of_layer;
  Parameter& table = embedding.front();
  const bool tied = m.tied_embeddings;  // embedding and head share the table
  table.writers = first && last && tied ? 2 : 1;
  table.only_added_to = !last || !tied;
  table.tied = tied && layout[program::Axis::pipeline] > 1;

  std::vector<Parameter> list;
  if (first) append(list, embedding, 0, tensor);
  for (const Chunk& chunk : chunks) {
    for (int l = chunk.first_layer; l < chunk.end(); ++l) {
      append(list, layer, of_embedding + l * of_layer, tensor, l);
    }
  }
  if (last) append(list, norm, behind_layers, tensor);
  // The head's weight stands last: its gradient is the first to be complete in the backward pass.
  if (last && !tied) append(list, head_table(m), behind_layers + elements(norm), tensor);
  if (last && !first && tied) append(list, {table}, 0, tensor);
  cut_into_buckets(list, settings.bucket_size_bytes);
  place(list);
  return list;
}

Parameters::Parameters(program::ProgramBuilder& builder, const config::Model& model, const config::Settings& settings,
                       const program::Layout& layout, int stage)
    : b_(builder), list_(parameters(model, settings, layout, stage)) {
  for (std::size_t i = 0; i < list_.size(); ++i) index_.emplace(list_[i].id, i);
  const program::View& end = list_.back().view;
  const auto flat = [&](const char* name, program::DType type) {
    return b_.buffer(name, type, end.offset + end.count, program::BufferKind::persistent);
  };
  const program::DType type = config::storage_of(settings.precision);
  master_ = flat("master", program::DType::f32);
  weights_ = type == program::DType::f32 ? master_ : flat("weights", type);
  moment1_ = flat("moment1", program::DType::f32);
  moment2_ = flat("moment2", program::DType::f32);
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
  emit(program::Fill{master_, 0}, "parameters");
  for (const Parameter& p : list_) {
    const program::View whole = in_buffer(master_, p.id);
    std::int64_t at = 0, index = p.first_index;
    for (const Slice& s : p.slices) {
      emit(program::Initialize{whole.part(at, s.count()), index, program::Axis::tensor, s.outer, s.full, s.part,
                               s.inner, p.mean, p.deviation},
           "parameter");
      at += s.count();
      index += s.outer * s.full * s.inner;
    }
  }
  if (weights_.buffer != master_.buffer) emit(program::Convert{master_, weights_}, "weights");
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
  const auto same_part = [&](const program::View& flat) { return flat.part(gradients.offset, gradients.count); };
  const program::View weights = weights_.buffer == master_.buffer ? program::View{} : same_part(weights_);
  return {same_part(master_), same_part(moment1_), same_part(moment2_), gradients, weights,
          finished_steps,     learning_rate};
}

}  // namespace harness::gpt
