#include "workloads/gpt/stage.h"

#include <algorithm>
#include <cmath>

#include "workloads/gpt/documents.h"

namespace harness::gpt {

int replicas(const Settings& settings, const Layout& layout) {
  return layout[Axis::data] / settings.context();
}

std::int64_t global_batch(const Settings& settings, const Layout& layout) {
  if (settings.gradient_accumulation == 0) return settings.global_batch_size;
  constexpr double most = 0x1p62;  // larger batches are refused for their number of micro-batches
  const double batch = static_cast<double>(settings.gradient_accumulation) *
                       static_cast<double>(settings.micro_batch_size) * replicas(settings, layout);
  return static_cast<std::int64_t>(std::min(batch, most));
}

Dimensions dimensions(const Model& model, const Settings& settings, const Layout& layout) {
  Dimensions d{.model = model.resolved(), .settings = settings};
  d.tensor = layout[Axis::tensor];
  d.hidden = model.hidden;
  d.head_dim = model.head_dim();
  d.heads = model.heads / d.tensor;
  d.kv_heads = model.key_heads() / d.tensor;
  d.sequence = model.sequence / settings.context();
  d.rows = settings.micro_batch_size * d.sequence;
  d.own_rows = settings.sequence_parallel ? d.rows / d.tensor : d.rows;
  d.local_hidden = model.hidden / d.tensor;
  d.local_ffn = model.mlp_width() / d.tensor;
  d.fc1_outputs = model.fc1_outputs() / d.tensor;
  d.local_vocab = model.vocab / d.tensor;
  const std::int64_t batch = global_batch(settings, layout);
  d.micro_batches = static_cast<int>(batch / (settings.micro_batch_size * replicas(settings, layout)));
  d.tokens = settings.has_documents() ? 1 : static_cast<double>(batch * model.sequence);
  // The padding after a row's documents counts as one more.
  if (settings.packs()) d.documents = Documents(settings, model.sequence, 1, 0).most_of_a_row() + 1;
  // Rounded to ten-thousandths: the last bits of an exponential differ between processors, and all ranks need one
  // Program.
  if (settings.packs()) d.unseen = std::round(1e4 * (1 - filled_by(settings, model.sequence, batch).attention)) / 1e4;
  d.type = config::storage_of(settings.precision);
  d.fp8 = config::has_fp8_products(settings.precision);
  d.block_scales = settings.precision == config::Precision::mxfp8;
  return d;
}

Stage::Stage(ProgramBuilder& builder, const Parameters& parameters, Gathers& gathers, const LossScaler& scaler,
             const StepFrame& frame, const Model& model, const Settings& settings, const Layout& layout, int stage)
    : b_(builder),
      parameters_(parameters),
      gathers_(gathers),
      scaler_(scaler),
      frame_(frame),
      d_(dimensions(model, settings, layout)),
      qkv_{"qkv", d_.hidden, d_.qkv_width(), "qkv input gradient", "qkv weight gradient", qkv_weight},
      projection_{
          "projection",     d_.local_hidden, d_.hidden, "projection input gradient", "projection weight gradient",
          projection_weight},
      fc1_{"fc1", d_.hidden, d_.fc1_outputs, "fc1 input gradient", "fc1 weight gradient", fc1_weight},
      fc2_{"fc2", d_.local_ffn, d_.hidden, "fc2 input gradient", "fc2 weight gradient", fc2_weight},
      head_{"head",
            d_.hidden,
            d_.local_vocab,
            "head input gradient",
            "head weight gradient",
            model.tied_embeddings ? word_embeddings : head_weight},
      chunks_(chunks_of(model, settings, layout, stage)) {
  const std::int64_t tokens = d_.micro_batches * d_.rows;
  if (chunks_.front().first) tokens_ = b_.buffer(tokens_buffer, DType::i32, tokens, BufferKind::input);
  if (chunks_.back().last) labels_ = b_.buffer(labels_buffer, DType::i32, tokens, BufferKind::input);
  if (d_.settings.has_documents() && chunks_.back().last)
    loss_scale_ = b_.buffer(loss_scale_buffer, DType::f32, 1, BufferKind::input);
  if (d_.settings.packs()) position_ids_ = b_.buffer(position_ids_buffer, DType::i32, tokens, BufferKind::input);
  const std::int64_t stride = d_.qkv_width();
  shape_ = {d_.settings.micro_batch_size, d_.heads, d_.head_dim, d_.sequence, d_.sequence, stride, stride, true,
            d_.heads / d_.kv_heads};
}

View Stage::columns_of(const View& qkv, std::int64_t first, std::int64_t width) const {
  return qkv.part(first, (d_.rows - 1) * d_.qkv_width() + width);
}

View Stage::activation(std::string name) {
  return scratch(std::move(name), d_.type, d_.own_rows * d_.hidden);
}

View Stage::folded(const Pass& pass, const View& in) {
  folded_ = {program::folded_pass, pass.phase, pass.micro_batch, pass.chunk};
  folded_result_ = activation("folded");
  if (!pass.forward() && in.present() && d_.settings.recompute != config::Recompute::none) {
    b_.emit(compute_stream, program::Fill{folded_result_, 0},
            {program::folded_beginning, pass.phase, pass.micro_batch, pass.chunk});
  }
  const Action action = in.present() ? Action(program::Convert{in, folded_result_}) : program::Fill{folded_result_, 0};
  b_.emit(compute_stream, action, folded_);
  const Chunk& chunk = chunks_[pass.chunk];
  return (pass.forward() ? chunk.last : chunk.first) ? View{} : folded_result_;
}

void Stage::enter(const Pass& pass) {
  if (folded_result_.present() && d_.tensor > 1) {
    folded_.what = program::folded_end;
    b_.emit(tensor_stream, program::Convert{folded_result_, activation("folded")}, folded_);
  }
  folded_result_ = {};
  pass_ = pass;
  at_ = {"", pass.phase, pass.micro_batch};
}

void Stage::use_layer(int layer) {
  enter_layer(layer);
  use(of_layer(norm1_gamma));
  if (!parameters_.whole_weights()) quantised_weights_.clear();  // gathered anew, possibly to another place
}

Label Stage::label(const char* what) const {
  Label label = at_;
  label.what = what;
  return label;
}

}  // namespace harness::gpt
