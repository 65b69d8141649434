#include "workloads/gpt/stage.h"

#include <algorithm>
#include <cmath>

namespace harness::gpt {

std::int64_t global_batch(const config::Settings& settings, const program::Layout& layout) {
  if (settings.gradient_accumulation == 0) return settings.global_batch_size;
  constexpr double most = 0x1p62;  // so many are refused for their number of micro-batches
  const double batch = static_cast<double>(settings.gradient_accumulation) *
                       static_cast<double>(settings.micro_batch_size) * layout[program::Axis::data];
  return static_cast<std::int64_t>(std::min(batch, most));
}

Dimensions dimensions(const config::Model& model, const config::Settings& settings, const program::Layout& layout,
                      int stage) {
  Dimensions d;
  d.tensor = layout[program::Axis::tensor];
  d.data = layout[program::Axis::data];
  d.stages = layout[program::Axis::pipeline];
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
  d.layers = static_cast<int>(model.layers / d.stages);
  d.first_layer = d.layers * stage;
  const std::int64_t batch = global_batch(settings, layout);
  d.micro_batches = static_cast<int>(batch / (settings.micro_batch_size * d.data));
  d.tokens = static_cast<double>(batch * model.sequence);
  d.type = config::storage_of(settings.precision);
  return d;
}

Stage::Stage(program::ProgramBuilder& builder, const config::Model& model, const config::Settings& settings,
             const program::Layout& layout, int stage)
    : b_(builder),
      d_(dimensions(model, settings, layout, stage)),
      qkv_{"qkv", d_.hidden, 3 * d_.local_hidden, "qkv input gradient", "qkv weight gradient"},
      projection_{"projection", d_.local_hidden, d_.hidden, "projection input gradient", "projection weight gradient"},
      fc1_{"fc1", d_.hidden, d_.local_ffn, "fc1 input gradient", "fc1 weight gradient"},
      fc2_{"fc2", d_.local_ffn, d_.hidden, "fc2 input gradient", "fc2 weight gradient"},
      head_{"head", d_.hidden, d_.local_vocab, "head input gradient", "head weight gradient", "word_embeddings"},
      parameters_(gpt::parameters(model, layout, stage)),
      frame_(builder, world_group, "loss") {
  const Parameter& end = parameters_.back();
  const std::int64_t n = end.view.offset + end.view.count;
  master_ = b_.buffer("master", program::DType::f32, n, program::BufferKind::persistent);
  weights_ =
      d_.type == program::DType::f32 ? master_ : b_.buffer("weights", d_.type, n, program::BufferKind::persistent);
  moment1_ = b_.buffer("moment1", program::DType::f32, n, program::BufferKind::persistent);
  moment2_ = b_.buffer("moment2", program::DType::f32, n, program::BufferKind::persistent);
  gradient_ = b_.buffer("gradient", program::DType::f32, n, program::BufferKind::persistent);
  if (d_.first())
    tokens_ = b_.buffer(tokens_buffer, program::DType::i32, d_.micro_batches * d_.rows, program::BufferKind::input);
  if (d_.last())
    labels_ = b_.buffer(labels_buffer, program::DType::i32, d_.micro_batches * d_.rows, program::BufferKind::input);
  learning_rate_ = b_.buffer(learning_rate_buffer, program::DType::f32, 1, program::BufferKind::input);
  for (const Parameter& p : parameters_) place_.emplace(p.name, p.view);
  const std::int64_t stride = 3 * d_.local_hidden;
  shape_ = {d_.micro_batch_size, d_.heads, d_.head_dim, d_.sequence, d_.sequence, stride, stride, true};
  deviation_projection_ = 0.02 / std::sqrt(2.0 * static_cast<double>(model.layers));
}

program::View Stage::in_buffer(const program::View& flat, const std::string& parameter) const {
  const program::View& place = place_.at(parameter);
  return flat.part(place.offset, place.count);
}

program::View Stage::third_of(const program::View& qkv, int which) const {
  const std::int64_t width = d_.local_hidden;
  return qkv.part(which * width, (d_.rows - 1) * 3 * width + width);
}

program::View Stage::activation(std::string name) {
  return scratch(std::move(name), d_.type, d_.rows * d_.hidden);
}

void Stage::enter(program::Phase phase, int micro_batch, int layer) {
  at_ = {"", phase, micro_batch, layer};
}

program::Label Stage::label(const char* what) const {
  program::Label label = at_;
  label.what = what;
  return label;
}

// Normal numbers with the deviations of GPT-2 (0.02; residual projections over sqrt(2 L)). Biases and norms are drawn
// too instead of set to 0 and 1: matrix units draw less power on zeros and run faster, and a gradient check that meets
// only zero biases checks less.
void Stage::emit_init() {
  enter(program::Phase::setup);
  emit(program::Fill{master_, 0}, "parameters");
  for (const Parameter& p : parameters_) {
    const bool gamma = p.name.ends_with("gamma");
    const bool projection = p.name.ends_with("projection.weight") || p.name.ends_with("fc2.weight");
    emit(program::Initialize{.out = in_buffer(master_, p.name),
                             .first_index = p.first_index,
                             .axis = program::Axis::tensor,
                             .outer = p.outer,
                             .full = p.full,
                             .part = p.part,
                             .inner = p.inner,
                             .mean = gamma ? 1.0 : 0.0,
                             .deviation = projection ? deviation_projection_ : 0.02},
         "parameter");
  }
  if (weights_.buffer != master_.buffer) emit(program::Convert{master_, weights_}, "weights");
  for (const program::View& v : {moment1_, moment2_, gradient_}) emit(program::Fill{v, 0}, "optimizer state");
}

void Stage::begin_step() {
  frame_.begin_step(0);
  enter(program::Phase::forward);
  // With one stage the head's weight gradient is the first to write the table's and replaces the old one.
  if (d_.first() && !d_.last()) emit(program::Fill{gradient("word_embeddings"), 0}, "embedding gradient");
}

program::AdamW Stage::update_of(const program::View& gradients) const {
  const auto same_part = [&](const program::View& flat) { return flat.part(gradients.offset, gradients.count); };
  const program::View weights = weights_.buffer == master_.buffer ? program::View{} : same_part(weights_);
  return {same_part(master_), same_part(moment1_), same_part(moment2_), gradients, weights,
          frame_.counter(),   learning_rate_};
}

}  // namespace harness::gpt
