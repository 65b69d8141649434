#include <algorithm>
#include <iterator>

#include "workloads/gpt/stage.h"

namespace harness::gpt {

View Stage::input_gradient(const View& dy, const Linear& layer, const View& before_gelu) {
  const View dx = scratch(layer.input_gradient, d_.type, d_.rows * layer.inputs);
  program::Matmul product{
      .a = dy,
      .b = weight(layer.weight),
      .aux = before_gelu,
      .out = dx,
      .m = d_.rows,
      .n = layer.inputs,
      .k = layer.outputs,
      .epilogue = before_gelu.present() ? program::Epilogue::gelu_backward : program::Epilogue::none};
  if (in_fp8(layer)) {
    const Quantised &gradient = quantised_gradient(dy, layer), &w = quantised_weight(layer, Wanted::transposed);
    product.a = gradient.plain;
    product.a_scale = gradient.scale;
    product.b = w.transposed;
    product.b_scale = w.scale_transposed;
    product.transpose_b = true;
  }
  emit(product, layer.input_gradient);
  return dx;
}

// Emits the gradient of a layer's weight, and with it that of its bias.
void Stage::weight_gradient(const View& dy, const Linear& layer, const View& x, ParameterId bias) {
  program::Matmul product{.a = dy,
                          .b = x,
                          .out = gradient(layer.weight),
                          .bias_gradient = gradient(bias),
                          .m = layer.outputs,
                          .n = layer.inputs,
                          .k = d_.rows,
                          .transpose_a = true,
                          .accumulate = adds()};
  if (in_fp8(layer)) {
    const Quantised &of_y = quantised_gradient(dy, layer), &input = quantised_input(x, layer, Wanted::transposed);
    product.a = of_y.transposed;
    product.a_scale = of_y.scale_transposed;
    product.b = input.transposed;
    product.b_scale = input.scale_transposed;
    product.bias_gradient = {};  // quantising dy yields it
    product.transpose_a = false;
    product.transpose_b = true;
  }
  emit(product, layer.weight_gradient);
  wrote({of_layer(layer.weight), bias});
}

View Stage::mlp_backward(const LayerActivations& a, const View& dy) {
  if (d_.model.activation == config::Activation::gelu) return input_gradient(dy, fc2_, a.fc1);
  const View dactivated = input_gradient(dy, fc2_);
  const View dfc1 = scratch("dfc1", d_.type, a.fc1.count);
  emit(program::SwiGluBackward{a.fc1, dactivated, dfc1, d_.rows, d_.local_ffn});
  return dfc1;
}

View Stage::attention_backward(const LayerActivations& a, const View& dy) {
  const View dqkv = scratch("dqkv", d_.type, a.qkv.count);
  emit(program::AttentionBackward{.q = queries(a.qkv),
                                  .k = keys(a.qkv),
                                  .v = values(a.qkv),
                                  .out = a.attention,
                                  .stats = a.stats,
                                  .dout = dy,
                                  .dq = queries(dqkv),
                                  .dk = keys(dqkv),
                                  .dv = values(dqkv),
                                  .shape = shape_,
                                  .probabilities = a.probabilities,
                                  .position_ids = of_micro_batch(position_ids_),
                                  .documents = d_.documents,
                                  .unseen = d_.unseen});
  rotate(dqkv, true);
  return dqkv;
}

View Stage::norm_backward(const View& dy, const Normalised& x, const Norm& norm, const View& dresidual,
                          ParameterId bias) {
  const View dx = activation(std::string("d") + norm.name);
  const auto emit_as = [&](auto op) {
    op.dout = dy;
    op.sum = x.sum;
    op.gamma = weight(norm.gamma);
    op.rstd = x.rstd;
    op.dresidual = dresidual;
    op.din = dx;
    op.dgamma = gradient(norm.gamma);
    op.dbias = gradient(bias);
    op.rows = d_.own_rows;
    op.width = d_.hidden;
    op.accumulate = adds();
    if constexpr (requires { op.dbeta; }) {
      op.mean = x.mean;
      op.dbeta = gradient(norm.beta);
    }
    emit(op, norm.name);
  };
  d_.model.norm == config::NormKind::layer_norm ? emit_as(program::LayerNormBackward{})
                                                : emit_as(program::RmsNormBackward{});
  wrote({of_layer(norm.gamma), of_layer(norm.beta), bias});
  return dx;
}

// `dy` is the gradient of the residual stream after the layer; returns that before it. Each input gradient is emitted
// before the weight gradient of the same product: its reduction then overlaps the weight gradient, and the gather of
// the weight gradient's input overlaps the input gradient. A norm adds the gradient that reaches the stream around it,
// and yields the gradient of the bias that it added: projection's, and for norm1 that of the layer below (bias_below;
// absent if this chunk does not hold it).
View Stage::layer_backward(const LayerActivations& a, const View& dy, ParameterId bias_below) {
  const View dfc2 = gather_rows(dy, "fc2 output gradient");
  const View dfc1 = mlp_backward(a, dfc2);
  weight_gradient(dfc2, fc2_, a.activated);
  if (d_.fp8) quantised_gradient(dfc1, fc1_, of_layer(fc1_bias));
  const View into_fc1 = gather_rows(a.norm2.out, norm2.name);
  const View dnorm2 = scatter_rows(input_gradient(dfc1, fc1_), fc1_.input_gradient);
  weight_gradient(dfc1, fc1_, into_fc1, of_layer(fc1_bias));
  const View dmiddle = norm_backward(dnorm2, a.norm2, norm2, dy, of_layer(projection_bias));

  const View dprojection = gather_rows(dmiddle, "projection output gradient");
  const View dattention = input_gradient(dprojection, projection_);
  weight_gradient(dprojection, projection_, a.attention);
  const View dqkv = attention_backward(a, dattention);
  if (d_.fp8) quantised_gradient(dqkv, qkv_, of_layer(qkv_bias));
  const View into_qkv = gather_rows(a.norm1.out, norm1.name);
  const View dnorm1 = scatter_rows(input_gradient(dqkv, qkv_), qkv_.input_gradient);
  weight_gradient(dqkv, qkv_, into_qkv, of_layer(qkv_bias));
  return norm_backward(dnorm1, a.norm1, norm1, dmiddle, bias_below);
}

// Runs from the loss to the residual stream after the last layer, whose bias is `bias`.
View Stage::head_backward(const MicroBatch& mb, ParameterId bias) {
  use({head_.weight});
  const View into_head = gather_rows(mb.final_norm.out, final_norm.name);
  const View dnorm = scatter_rows(input_gradient(mb.logits, head_), head_.input_gradient);
  weight_gradient(mb.logits, head_, into_head);
  use({final_norm_gamma});
  return norm_backward(dnorm, mb.final_norm, final_norm, {}, bias);
}

void Stage::embed_backward(const View& dy) {
  emit(program::EmbeddingBackward{.tokens = of_micro_batch(tokens_),
                                  .dout = gather_rows(dy, "embedding"),
                                  .dwords = gradient(word_embeddings),
                                  .dpositions = gradient(position_embeddings),
                                  .rows = d_.rows,
                                  .width = d_.hidden,
                                  .sequence = d_.model.sequence,
                                  .shard = vocabulary(),
                                  .accumulate_positions = adds(),
                                  .position_ids = of_micro_batch(position_ids_)});
  wrote({of_layer(position_embeddings), of_layer(word_embeddings)});
}

void Stage::wrote(std::initializer_list<ParameterId> gradients) {
  if (!pass_.last && parameters_.whole_gradients()) return;
  std::ranges::copy_if(gradients, std::back_inserter(wrote_), [&](ParameterId id) { return parameters_.has(id); });
}

void Stage::tell(const std::function<void(ParameterId)>& on_final) {
  for (const ParameterId id : wrote_) on_final(id);
  wrote_.clear();
}

View Stage::backward(const Pass& pass, const View& dy, const std::function<void(ParameterId)>& on_final) {
  enter(pass);
  const Chunk& chunk = chunks_[pass.chunk];
  const MicroBatch& mb = chunk.saved.at(pass.micro_batch);
  ParameterId bias{fc2_bias, chunk.end() - 1};  // added last to x
  View dx = dy;
  if (chunk.last) {
    dx = head_backward(mb, bias);
  } else if (parameters_.has(bias)) {
    emit(program::ColumnSum{dy, gradient(bias), d_.own_rows, d_.hidden, adds()}, "fc2 bias gradient");
    wrote({bias});
  }
  tell(on_final);
  for (int layer = chunk.end() - 1; layer >= chunk.first_layer; --layer) {
    use_layer(layer);
    bias = layer > chunk.first_layer ? ParameterId{fc2_bias, layer - 1} : ParameterId{};
    dx = layer_backward(restored(mb.layers.at(layer - chunk.first_layer)), dx, bias);
    tell(on_final);
  }
  enter_layer(-1);
  if (!chunk.first) return dx;
  embed_backward(dx);
  tell(on_final);
  return {};
}

}  // namespace harness::gpt
