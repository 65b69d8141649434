#include "workloads/gpt_stage.h"

#include <cmath>

namespace harness::gpt {

Dimensions dimensions(const Model& model, const Settings& settings, const Layout& layout, int stage) {
  Dimensions d;
  d.tensor = layout[Axis::tensor];
  d.data = layout[Axis::data];
  d.stages = layout[Axis::pipeline];
  d.stage = stage;
  d.hidden = model.hidden;
  d.head_dim = model.head_dim();
  d.heads = model.heads / d.tensor;
  d.sequence = model.sequence;
  d.micro_batch_size = settings.micro_batch_size;
  d.rows = settings.micro_batch_size * model.sequence;
  d.local_hidden = model.hidden / d.tensor;
  d.local_ffn = model.ffn() / d.tensor;
  d.local_vocab = model.vocab / d.tensor;
  d.layers = model.layers / d.stages;
  d.first_layer = d.layers * stage;
  d.micro_batches = settings.global_batch_size / (settings.micro_batch_size * d.data);
  d.tokens = static_cast<double>(settings.global_batch_size * model.sequence);
  d.type = settings.precision == Precision::bf16 ? DType::bf16 : DType::f32;
  return d;
}

Stage::Stage(ProgramBuilder& builder, const Model& model, const Settings& settings, const Layout& layout, int stage)
    : b_(builder), d_(dimensions(model, settings, layout, stage)), parameters_(gpt::parameters(model, layout, stage)) {
  const Parameter& end = parameters_.back();
  const std::int64_t n = end.view.offset + end.view.count;
  master_ = b_.buffer("master", DType::f32, n, BufferKind::persistent);
  weights_ = d_.type == DType::f32 ? master_ : b_.buffer("weights", d_.type, n, BufferKind::persistent);
  moment1_ = b_.buffer("moment1", DType::f32, n, BufferKind::persistent);
  moment2_ = b_.buffer("moment2", DType::f32, n, BufferKind::persistent);
  gradient_ = b_.buffer("gradient", DType::f32, n, BufferKind::persistent);
  counter_ = b_.buffer("counter", DType::i32, 1, BufferKind::persistent);
  losses_ = b_.buffer(losses_buffer, DType::f32, loss_ring, BufferKind::output);
  if (d_.first()) tokens_ = b_.buffer(tokens_buffer, DType::i32, d_.micro_batches * d_.rows, BufferKind::input);
  if (d_.last()) labels_ = b_.buffer(labels_buffer, DType::i32, d_.micro_batches * d_.rows, BufferKind::input);
  learning_rate_ = b_.buffer(learning_rate_buffer, DType::f32, 1, BufferKind::input);
  for (const Parameter& p : parameters_) place_.emplace(p.name, p.view);
  saved_.resize(static_cast<std::size_t>(d_.micro_batches));
  const std::int64_t stride = 3 * d_.local_hidden;
  shape_ = {d_.micro_batch_size, d_.heads, d_.head_dim, d_.sequence, d_.sequence, stride, stride, true};
  deviation_projection_ = 0.02 / std::sqrt(2.0 * static_cast<double>(model.layers));
}

View Stage::weight(const std::string& name) const {
  const View& v = place_.at(name);
  return {weights_.buffer, v.offset, v.count};
}

View Stage::gradient(const std::string& name) const {
  const View& v = place_.at(name);
  return {gradient_.buffer, v.offset, v.count};
}

View Stage::scratch(const char* name, DType type, std::int64_t count) {
  return b_.buffer(name, type, count);
}

View Stage::activation(const char* name) {
  return scratch(name, d_.type, d_.rows * d_.hidden);
}

OperationId Stage::emit(const Action& action, const char* what, Phase phase) {
  Label label = at_;
  label.what = what;
  label.phase = phase;
  return b_.emit(compute, action, label);
}

void Stage::all_reduce_tensor(const View& v, const char* what, Phase phase) {
  if (d_.tensor == 1) return;
  Label label = at_;
  label.what = what;
  label.phase = phase;
  b_.emit(tensor_stream, AllReduce{tensor_group, v}, label);
}

// Normal numbers with the deviations of GPT-2 (0.02; residual projections over sqrt(2 L)). Biases and norms are drawn
// too instead of set to 0 and 1: matrix units draw less power on zeros and run faster, and a gradient check that meets
// only zero biases checks less.
void Stage::emit_init() {
  at_ = {};
  emit(Fill{master_, 0}, "parameters", Phase::setup);
  for (const Parameter& p : parameters_) {
    const bool gamma = p.name.ends_with("gamma");
    const bool projection = p.name.ends_with("projection.weight") || p.name.ends_with("fc2.weight");
    emit(Initialize{{master_.buffer, p.view.offset, p.view.count},
                    p.first_index,
                    Axis::tensor,
                    p.outer,
                    p.full,
                    p.part,
                    p.inner,
                    gamma ? 1.0 : 0.0,
                    projection ? deviation_projection_ : 0.02},
         "parameter", Phase::setup);
  }
  if (weights_.buffer != master_.buffer) emit(Convert{master_, weights_}, "weights", Phase::setup);
  for (const View& v : {moment1_, moment2_, gradient_}) emit(Fill{v, 0}, "optimizer state", Phase::setup);
  emit(Fill{counter_, 0}, "step counter", Phase::setup);
}

void Stage::begin_step() {
  at_ = {};
  loss_ = scratch("loss", DType::f32, 1);
  emit(Fill{loss_, 0}, "loss", Phase::forward);
  // With one stage the head's weight gradient is the first to write the table's and replaces the old one.
  if (d_.first() && !d_.last()) emit(Fill{gradient("word_embeddings"), 0}, "embedding gradient", Phase::forward);
}

void Stage::finish_step(const std::vector<OperationId>& after) {
  at_ = {};
  const View weights = weights_.buffer == master_.buffer ? View{} : weights_;
  emit(AdamW{master_, moment1_, moment2_, gradient_, weights, counter_, learning_rate_}, "", Phase::optimizer);
  std::vector<OperationId> all = after;
  for (StreamId s = 0; s < world_stream; ++s) all.push_back(b_.last(s));
  b_.emit(world_stream, AllReduce{world_group, loss_}, {"loss", Phase::finish}, all);
  b_.emit(world_stream, Record{loss_, losses_, counter_}, {"loss", Phase::finish});
}

}  // namespace harness::gpt
