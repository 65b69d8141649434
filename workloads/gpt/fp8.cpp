#include <utility>

#include "base/floats.h"
#include "base/text.h"
#include "workloads/gpt/stage.h"

namespace harness::gpt {

// Current scaling: a tensor's scale follows from its own largest element. Delayed scaling takes it from earlier steps
// (Micikevicius et al. 2022, arXiv 2209.05433), which saves one read of the tensor but needs a history of every tensor
// and an all-reduce over the ranks that share one. Here each rank scales its own shard, without a message. The blocks
// of mxfp8 lie along the reduction dimension of a product, so a tensor and its transpose have separate scales (Rouhani
// et al. 2023, arXiv 2310.10537).

const Quantised& Stage::quantise(Quantised& known, program::Quantise op, DType type, Wanted wanted, const char* what) {
  const bool plain = wanted != Wanted::transposed, transposed = wanted != Wanted::plain;
  if ((known.plain.present() || !plain) && (known.transposed.present() || !transposed)) return known;
  known = {};
  if (plain) known.plain = scratch("fp8", type, op.in.count);
  if (transposed) known.transposed = scratch("fp8_transposed", type, op.in.count);
  if (d_.block_scales) {
    const auto scales = [&](const char* name, std::int64_t rows, std::int64_t width) {
      return scratch(name, DType::e8m0, block_scales(rows, width));
    };
    if (plain) known.scale = scales("fp8_scales", op.rows, op.width);
    if (transposed) known.scale_transposed = scales("fp8_transposed_scales", op.width, op.rows);
    op.scale_transposed = known.scale_transposed;
  } else {
    known.scale = known.scale_transposed = floats("fp8_scale", 1);
  }
  op.out = known.plain;
  op.out_transposed = known.transposed;
  op.scale = known.scale;
  emit(op, what);
  return known;
}

const Quantised& Stage::quantised_input(const View& x, const Linear& layer, Wanted wanted) {
  return quantise(quantised_[x.buffer], {.in = x, .rows = d_.rows, .width = layer.inputs}, DType::e4m3, wanted,
                  "input");
}

// If weights are whole, the first micro-batch of a step quantises them for all.
const Quantised& Stage::quantised_weight(const Linear& layer, Wanted wanted) {
  return quantise(quantised_weights_[of_layer(layer.weight)],
                  {.in = weight(layer.weight), .rows = layer.outputs, .width = layer.inputs}, DType::e4m3, wanted,
                  "weight");
}

// Gradients vary more in magnitude than activations: with one scale for all of them, e5m2 has the range.
const Quantised& Stage::quantised_gradient(const View& dy, const Linear& layer, ParameterId bias) {
  return quantise(quantised_[dy.buffer],
                  {.in = dy,
                   .bias_gradient = gradient(bias),
                   .rows = d_.rows,
                   .width = layer.outputs,
                   .accumulate = parameters_.has(bias) && adds()},
                  d_.block_scales ? DType::e4m3 : DType::e5m2, Wanted::both, "output gradient");
}

std::string why_not_fp8(const Model& model, const Settings& settings, const Layout& layout) {
  if (!config::has_fp8_products(settings.precision)) return "";
  const Dimensions d = dimensions(model, settings, layout);
  // Each size is the reduction dimension of one of a layer's products.
  const std::int64_t multiple = d.block_scales ? mx_block : program::fp8_multiple;
  const std::string share = d.tensor == 1 ? "" : fmt::format(" / tensor_parallel {}", d.tensor);
  for (const auto& [what, size] : {std::pair<std::string, std::int64_t>{"hidden", d.hidden},
                                   {"hidden" + share, d.local_hidden},
                                   {"(hidden + 2 * kv_heads * head size)" + share, d.qkv_width()},
                                   {"ffn" + share, d.local_ffn},
                                   {"micro_batch_size * sequence", d.rows}}) {
    if (size % multiple == 0) continue;
    return fmt::format("precision {} multiplies matrices whose sizes are multiples of {} only, and {} is {}",
                       config::name_of(settings.precision), multiple, what, size);
  }
  return "";
}

}  // namespace harness::gpt
