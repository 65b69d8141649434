#include "workloads/gpt/stage.h"

namespace harness::gpt {

program::View Stage::input_gradient(const program::View& dy, const Linear& layer, const program::View& before_gelu) {
  const program::View dx = scratch(layer.input_gradient, d_.type, d_.rows * layer.inputs);
  emit(program::Matmul{.a = dy,
                       .b = weight(layer.weight()),
                       .aux = before_gelu,
                       .out = dx,
                       .m = d_.rows,
                       .n = layer.inputs,
                       .k = layer.outputs,
                       .epilogue = before_gelu.present() ? program::Epilogue::gelu_backward : program::Epilogue::none},
       layer.input_gradient);
  return dx;
}

void Stage::weight_gradient(const program::View& dy, const Linear& layer, const program::View& x,
                            const program::View& dbias) {
  emit(program::Matmul{.a = dy,
                       .b = x,
                       .out = gradient(layer.weight()),
                       .bias_gradient = dbias,
                       .m = layer.outputs,
                       .n = layer.inputs,
                       .k = d_.rows,
                       .transpose_a = true,
                       .accumulate = accumulate_},
       layer.weight_gradient);
}

program::View Stage::attention_backward(const LayerActivations& a, const program::View& dy) {
  const program::View dqkv = scratch("dqkv", d_.type, a.qkv.count);
  emit(program::AttentionBackward{.q = queries(a.qkv),
                                  .k = keys(a.qkv),
                                  .v = values(a.qkv),
                                  .out = a.attention,
                                  .stats = a.stats,
                                  .dout = dy,
                                  .dq = queries(dqkv),
                                  .dk = keys(dqkv),
                                  .dv = values(dqkv),
                                  .shape = shape_});
  return dqkv;
}

program::View Stage::layer_norm_backward(const program::View& dy, const Normalised& norm, const char* name,
                                         const program::View& dresidual, const program::View& dbias) {
  const std::string base = name;
  const program::View dx = activation("d" + base);
  emit(program::LayerNormBackward{.dout = dy,
                                  .sum = norm.sum,
                                  .gamma = weight(base + ".gamma"),
                                  .mean = norm.mean,
                                  .rstd = norm.rstd,
                                  .dresidual = dresidual,
                                  .din = dx,
                                  .dgamma = gradient(base + ".gamma"),
                                  .dbeta = gradient(base + ".beta"),
                                  .dbias = dbias,
                                  .rows = d_.rows,
                                  .width = d_.hidden,
                                  .accumulate = accumulate_},
       name);
  return dx;
}

// `dy` is the gradient of the residual stream after the layer; returns that before it. Each input gradient is emitted
// before the weight gradient of the same product: its all-reduce then runs behind the weight gradient. A norm adds what
// reaches the stream past it, and yields the gradient of the bias that it added: projection's, and for norm1 that of
// the layer below (dbias_below; absent where this stage does not hold it).
program::View Stage::layer_backward(const LayerActivations& a, const program::View& dy,
                                    const program::View& dbias_below) {
  const program::View dfc1 = input_gradient(dy, fc2_, a.fc1_before_gelu);
  weight_gradient(dy, fc2_, a.fc1);
  const program::View dnorm2 = sum_over_tensor(input_gradient(dfc1, fc1_), fc1_.input_gradient);
  weight_gradient(dfc1, fc1_, a.norm2.out, gradient("fc1.bias"));
  const program::View dmiddle = layer_norm_backward(dnorm2, a.norm2, "norm2", dy, gradient("projection.bias"));

  const program::View dattention = input_gradient(dmiddle, projection_);
  weight_gradient(dmiddle, projection_, a.attention);
  const program::View dqkv = attention_backward(a, dattention);
  const program::View dnorm1 = sum_over_tensor(input_gradient(dqkv, qkv_), qkv_.input_gradient);
  weight_gradient(dqkv, qkv_, a.norm1.out, gradient("qkv.bias"));
  return layer_norm_backward(dnorm1, a.norm1, "norm1", dmiddle, dbias_below);
}

// From the loss to the residual stream after the last layer, whose bias gradient is dbias.
program::View Stage::head_backward(const MicroBatch& mb, const program::View& dbias) {
  const program::View dnorm = sum_over_tensor(input_gradient(mb.logits, head_), head_.input_gradient);
  weight_gradient(mb.logits, head_, mb.final_norm.out);
  return layer_norm_backward(dnorm, mb.final_norm, "final_norm", {}, dbias);
}

void Stage::embed_backward(int micro_batch, const program::View& dy) {
  emit(program::EmbeddingBackward{.tokens = tokens_.part(micro_batch * d_.rows, d_.rows),
                                  .dout = dy,
                                  .dwords = gradient("word_embeddings"),
                                  .dpositions = gradient("position_embeddings"),
                                  .rows = d_.rows,
                                  .width = d_.hidden,
                                  .sequence = d_.sequence,
                                  .shard = vocabulary(),
                                  .accumulate_positions = accumulate_});
}

program::View Stage::backward(int micro_batch, const program::View& dy,
                              const std::function<void(const std::string&)>& on_final) {
  enter(program::Phase::backward, micro_batch);
  accumulate_ = micro_batch > 0;  // micro-batches go backward in the order in which they went forward
  const auto final = [&](std::initializer_list<const char*> names, const std::string& prefix = "") {
    if (micro_batch + 1 < d_.micro_batches) return;
    for (const char* name : names) on_final(prefix + name);
  };
  const auto bias_of = [&](int layer) { return gradient_of(prefix(layer) + "fc2.bias"); };
  const MicroBatch& mb = saved_.at(micro_batch);
  const int last_layer = d_.first_layer + d_.layers - 1;
  program::View dx = dy;
  if (d_.last()) {
    dx = head_backward(mb, bias_of(last_layer));
    if (!d_.first()) final({"word_embeddings"});
    final({"final_norm.gamma", "final_norm.beta"});
  } else {
    emit(program::ColumnSum{dy, bias_of(last_layer), d_.rows, d_.hidden, accumulate_}, "fc2 bias gradient");
  }
  final({"fc2.bias"}, prefix(last_layer));
  for (int layer = last_layer; layer >= d_.first_layer; --layer) {
    enter(program::Phase::backward, micro_batch, layer);
    const bool has_below = layer > d_.first_layer;
    dx = layer_backward(mb.layers.at(layer - d_.first_layer), dx, has_below ? bias_of(layer - 1) : program::View{});
    final({"fc2.weight", "fc1.weight", "fc1.bias", "norm2.gamma", "norm2.beta", "projection.bias", "projection.weight",
           "qkv.weight", "qkv.bias", "norm1.gamma", "norm1.beta"},
          prefix(layer));
    if (has_below) final({"fc2.bias"}, prefix(layer - 1));
  }
  enter(program::Phase::backward, micro_batch);
  if (!d_.first()) return dx;
  embed_backward(micro_batch, dx);
  final({"position_embeddings", "word_embeddings"});
  return {};
}

}  // namespace harness::gpt
