#include "workloads/gpt/stage.h"

namespace harness::gpt {

View Stage::linear(const View& x, const Linear& layer, const View& bias, const View& add, const View& before_gelu) {
  const View y = scratch(layer.name, d_.type, d_.rows * layer.outputs);
  program::Matmul product{.bias = bias,
                          .add = add,
                          .aux = before_gelu,
                          .out = y,
                          .m = d_.rows,
                          .n = layer.outputs,
                          .k = layer.inputs,
                          .transpose_b = true,
                          .epilogue = before_gelu.present() ? program::Epilogue::gelu : program::Epilogue::none};
  if (in_fp8(layer)) {
    // The backward pass reads x transposed, unless a second gather or a second forward pass produces x anew.
    const bool gathered_again = d_.divides_rows() && (&layer == &qkv_ || &layer == &fc1_);
    const bool again = gathered_again || (recomputes_layer() && !at_.recomputed);
    const Quantised& input = quantised_input(x, layer, again ? Wanted::plain : Wanted::both);
    const bool lasts = at_.recomputed || parameters_.whole_weights();
    const Quantised& w = quantised_weight(layer, lasts ? Wanted::both : Wanted::plain);
    product.a = input.plain;
    product.a_scale = input.scale;
    product.b = w.plain;
    product.b_scale = w.scale;
  } else {
    product.a = x;
    product.b = weight(layer.weight);
  }
  emit(product, layer.name);
  return y;
}

void Stage::rotate(const View& qkv, bool backward) {
  if (d_.model.positions != config::Positions::rotary) return;
  const std::int64_t heads = d_.heads + d_.kv_heads;  // queries and keys side by side
  emit(program::Rope{columns_of(qkv, 0, heads * d_.head_dim), d_.rows, d_.qkv_width(), heads, d_.head_dim, d_.sequence,
                     d_.model.rope_theta, backward, of_micro_batch(position_ids_)});
}

View Stage::attention(LayerActivations& a) {
  a.attention = scratch("attention", d_.type, d_.rows * d_.local_hidden);
  a.stats = floats("attention_stats", d_.rows * d_.heads);
  if (d_.settings.attention == config::AttentionKind::unfused) {
    a.probabilities = scratch("attention_probabilities", d_.type, d_.rows * d_.heads * d_.sequence);
  }
  emit(program::Attention{queries(a.qkv), keys(a.qkv), values(a.qkv), a.attention, a.stats, shape_, a.probabilities,
                          of_micro_batch(position_ids_), d_.documents, d_.unseen});
  return a.attention;
}

// Computes residual + x W^T + bias. With tensor parallelism the product is a sum over ranks, and bias and residual
// belong in it once: the next norm adds them after the reduction.
ResidualStream Stage::onto_stream(const View& x, const Linear& layer, const View& bias, const View& residual) {
  if (d_.tensor == 1) return {linear(x, layer, bias, residual)};
  return {scatter_rows(linear(x, layer), layer.name), bias, residual};
}

Normalised Stage::normalise(const ResidualStream& stream, const Norm& norm) {
  const std::string base = norm.name;
  const bool centres = d_.model.norm == config::NormKind::layer_norm;
  Normalised x{stream.x, activation(base), {}, {}};
  if (centres) x.mean = floats(base + "_mean", d_.own_rows);
  x.rstd = floats(base + "_rstd", d_.own_rows);
  const View sum = stream.is_sum() ? View{} : activation(base + "_sum");
  if (sum.present()) x.sum = sum;
  const auto emit_as = [&](auto op) {
    op.in = stream.x;
    op.bias = stream.bias;
    op.residual = stream.residual;
    op.gamma = weight(norm.gamma);
    op.sum = sum;
    op.out = x.out;
    op.rstd = x.rstd;
    op.rows = d_.own_rows;
    op.width = d_.hidden;
    if constexpr (requires { op.beta; }) {
      op.beta = weight(norm.beta);
      op.mean = x.mean;
    }
    emit(op, norm.name);
  };
  centres ? emit_as(program::LayerNorm{}) : emit_as(program::RmsNorm{});
  return x;
}

// Korthikanti et al. 2022, section 4.2.2: sequence parallelism replaces the all-reduce by a reduce-scatter and an
// all-gather. Sequences are consecutive, so a rank's share is own_rows consecutive rows.
View Stage::scatter_rows(const View& v, const char* what) {
  if (d_.tensor == 1) return v;
  if (!d_.divides_rows()) {
    b_.emit(tensor_stream, program::AllReduce{tensor_group, v}, label(what));
    return v;
  }
  const View own = activation(what);
  b_.emit(tensor_stream, program::ReduceScatter{tensor_group, v, own}, label(what));
  return own;
}

View Stage::gather_rows(const View& v, const char* what) {
  if (!d_.divides_rows()) return v;
  const View all = scratch(what, d_.type, d_.rows * d_.hidden);
  b_.emit(tensor_stream, program::AllGather{tensor_group, v, all}, label(what));
  return all;
}

View Stage::embed() {
  const View out = scratch("embedded", d_.type, d_.rows * d_.hidden);
  emit(program::Embedding{.tokens = of_micro_batch(tokens_),
                          .words = weight(word_embeddings),
                          .positions = weight(position_embeddings),
                          .out = out,
                          .rows = d_.rows,
                          .width = d_.hidden,
                          .sequence = d_.model.sequence,
                          .shard = vocabulary(),
                          .position_ids = of_micro_batch(position_ids_)});
  return scatter_rows(out, "embedding");
}

// x -> x + attention(norm1(x)) -> x + mlp(norm2(x)).
ResidualStream Stage::layer_forward(LayerActivations& a, const ResidualStream& x) {
  a.norm1 = normalise(x, norm1);
  a.qkv = linear(gather_rows(a.norm1.out, norm1.name), qkv_, weight(qkv_bias));
  rotate(a.qkv, false);
  const ResidualStream middle = onto_stream(attention(a), projection_, weight(projection_bias), a.norm1.sum);

  a.norm2 = normalise(middle, norm2);
  return onto_stream(into_mlp(a), fc2_, lasting(weight(fc2_bias)), a.norm2.sum);
}

View Stage::lasting(const View& weight) {
  if (d_.tensor == 1 || !weight.present() || parameters_.whole_weights()) return weight;
  const View copy = scratch("lasting_weight", d_.type, weight.count);
  emit(program::Convert{weight, copy}, "lasting weight");
  return copy;
}

View Stage::into_mlp(LayerActivations& a) {
  const View x = gather_rows(a.norm2.out, norm2.name), bias = weight(fc1_bias);
  if (d_.model.activation == config::Activation::gelu) {
    a.fc1 = scratch("fc1_before_gelu", d_.type, d_.rows * d_.local_ffn);
    a.activated = linear(x, fc1_, bias, {}, a.fc1);
  } else {
    a.fc1 = linear(x, fc1_, bias);
    a.activated = scratch("swiglu", d_.type, d_.rows * d_.local_ffn);
    emit(program::SwiGlu{a.fc1, a.activated, d_.rows, d_.local_ffn});
  }
  return a.activated;
}

View Stage::forward(const Pass& pass, const View& in) {
  enter(pass);
  Chunk& chunk = chunks_[pass.chunk];
  MicroBatch& mb = chunk.saved[pass.micro_batch];
  mb = {};
  if (chunk.first) use({word_embeddings});
  ResidualStream x{chunk.first ? embed() : in};
  for (int layer = chunk.first_layer; layer < chunk.end(); ++layer) {
    use_layer(layer);
    LayerActivations a;
    x = layer_forward(a, x);
    mb.layers.push_back(kept(a));
  }
  enter_layer(-1);
  if (chunk.last) {
    use({final_norm_gamma});
    mb.final_norm = normalise(x, final_norm);
    use({head_.weight});
    loss(mb);
    return {};
  }
  if (x.is_sum()) return x.x;
  const View out = activation("stage_output");
  emit(program::ResidualAdd{x.x, x.bias, x.residual, out, d_.own_rows, d_.hidden}, "stage output");
  return out;
}

void Stage::loss(MicroBatch& mb) {
  mb.logits = linear(gather_rows(mb.final_norm.out, final_norm.name), head_);
  const std::int64_t rows = d_.rows, vocab = d_.local_vocab;
  const View labels = of_micro_batch(labels_);
  if (d_.tensor == 1) {
    emit(program::CrossEntropy{mb.logits, labels, frame_.value(), rows, vocab, 1 / d_.tokens, 1 / d_.tokens,
                               loss_scale_, scaler_.scale()});
    return;
  }
  // Vocabulary-parallel (Shoeybi et al. 2019): three all-reduces of one number per row. Every tensor rank gets the same
  // loss and adds its share of it, so that the sum over the world counts it once.
  const View maximum = floats("loss_maximum", rows), target = floats("loss_target", rows),
             sum = floats("loss_sum", rows);
  const auto reduce = [&](const View& v, const char* what, program::Reduction reduction) {
    b_.emit(tensor_stream, program::AllReduce{tensor_group, v, reduction}, label(what));
  };
  emit(program::CrossEntropyMaximum{mb.logits, maximum, rows, vocab});
  reduce(maximum, "loss maximum", program::Reduction::max);
  emit(program::CrossEntropySums{mb.logits, labels, maximum, target, sum, rows, vocab, vocabulary()});
  reduce(target, "loss target", program::Reduction::sum);
  reduce(sum, "loss sum", program::Reduction::sum);
  emit(program::CrossEntropyGradient{mb.logits, labels, maximum, target, sum, frame_.value(), rows, vocab, vocabulary(),
                                     1 / (d_.tokens * d_.tensor), 1 / d_.tokens, loss_scale_, scaler_.scale()});
}

bool Stage::recomputes_layer() const {
  if (d_.settings.recompute != config::Recompute::full) return false;
  return d_.settings.recompute_layers == 0 ||
         at_.layer - chunks_[pass_.chunk].first_layer < d_.settings.recompute_layers;
}

// Memory follows from this alone: a buffer that no backward pass reads is free after its last forward use.
LayerActivations Stage::kept(const LayerActivations& a) const {
  LayerActivations some = a;
  if (d_.settings.recompute == config::Recompute::selective) some.probabilities = {};
  if (!recomputes_layer()) return some;
  // Keep the stream as the first norm summed it, not its addends: with tensor parallelism a layer's input is a pending
  // sum of two tensors and a bias.
  some = {};
  some.norm1.sum = a.norm1.sum;
  return some;
}

LayerActivations Stage::restored(const LayerActivations& kept) {
  LayerActivations a = kept;
  at_.recomputed = true;
  if (!kept.norm1.out.present()) {
    // The whole layer runs again, including fc2 and its sum over ranks, whose result is not read. The frameworks do the
    // same, because they call the layer's forward function, and so does the formula with 96 instead of 72
    // (docs/method.md).
    layer_forward(a, {kept.norm1.sum});
  } else if (d_.settings.attention == config::AttentionKind::unfused && !kept.probabilities.present()) {
    LayerActivations again;
    again.qkv = kept.qkv;
    attention(again);
    a.probabilities = again.probabilities;
  }
  at_.recomputed = false;
  return a;
}

}  // namespace harness::gpt
