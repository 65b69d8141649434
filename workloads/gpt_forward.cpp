#include "workloads/gpt_stage.h"

namespace harness::gpt {
namespace {
constexpr Phase fwd = Phase::forward;
}

View Stage::embed(int micro_batch) {
  const View out = activation("embedded");
  emit(Embedding{tokens_.part(micro_batch * d_.rows, d_.rows),
                 weight("word_embeddings"),
                 weight("position_embeddings"),
                 out,
                 d_.rows,
                 d_.hidden,
                 d_.sequence,
                 {Axis::tensor, d_.local_vocab}},
       "", fwd);
  all_reduce_tensor(out, "embedding", fwd);
  return out;
}

// x -> x + attention(norm1(x)) -> x + mlp(norm2(x)). The additions happen in the following norm, together with the bias
// of the product that feeds it: with tensor parallelism the product is a sum over ranks, to which its bias belongs
// once.
void Stage::layer_forward(LayerActivations& a, const std::string& p) {
  const std::int64_t rows = d_.rows, h = d_.hidden, lh = d_.local_hidden, lf = d_.local_ffn;
  const auto row_values = [&](const char* name) { return scratch(name, DType::f32, rows); };

  a.norm1 = activation("norm1"), a.mean1 = row_values("mean1"), a.rstd1 = row_values("rstd1");
  LayerNorm norm1{in_,     {},   {}, weight(p + "norm1.gamma"), weight(p + "norm1.beta"), {}, a.norm1, a.mean1,
                  a.rstd1, rows, h};
  a.sum1 = in_;
  if (!bias_.empty()) {
    a.sum1 = activation("residual1");
    norm1.bias = weight(bias_), norm1.residual = residual_, norm1.sum = a.sum1;
  }
  emit(norm1, "norm1", fwd);

  a.qkv = scratch("qkv", d_.type, rows * 3 * lh);
  emit(Matmul{.a = a.norm1,
              .b = weight(p + "qkv.weight"),
              .bias = weight(p + "qkv.bias"),
              .aux = {},
              .out = a.qkv,
              .bias_gradient = {},
              .m = rows,
              .n = 3 * lh,
              .k = h,
              .transpose_b = true},
       "qkv", fwd);
  a.attention = scratch("attention", d_.type, rows * lh);
  a.stats = scratch("attention_stats", DType::f32, rows * d_.heads);
  const std::int64_t span = (rows - 1) * 3 * lh + lh;
  emit(Attention{a.qkv.part(0, span), a.qkv.part(lh, span), a.qkv.part(2 * lh, span), a.attention, a.stats, shape_}, "",
       fwd);
  const View projection = activation("projection");
  emit(Matmul{.a = a.attention,
              .b = weight(p + "projection.weight"),
              .bias = {},
              .aux = {},
              .out = projection,
              .bias_gradient = {},
              .m = rows,
              .n = h,
              .k = lh,
              .transpose_b = true},
       "projection", fwd);
  all_reduce_tensor(projection, "projection", fwd);

  a.sum2 = activation("residual2"), a.norm2 = activation("norm2");
  a.mean2 = row_values("mean2"), a.rstd2 = row_values("rstd2");
  emit(LayerNorm{projection, weight(p + "projection.bias"), a.sum1, weight(p + "norm2.gamma"), weight(p + "norm2.beta"),
                 a.sum2, a.norm2, a.mean2, a.rstd2, rows, h},
       "norm2", fwd);

  a.fc1_in = scratch("fc1_in", d_.type, rows * lf), a.fc1_out = scratch("fc1_out", d_.type, rows * lf);
  emit(Matmul{.a = a.norm2,
              .b = weight(p + "fc1.weight"),
              .bias = weight(p + "fc1.bias"),
              .aux = a.fc1_in,
              .out = a.fc1_out,
              .bias_gradient = {},
              .m = rows,
              .n = lf,
              .k = h,
              .transpose_b = true,
              .epilogue = Epilogue::gelu},
       "fc1", fwd);
  const View fc2 = activation("fc2");
  emit(Matmul{.a = a.fc1_out,
              .b = weight(p + "fc2.weight"),
              .bias = {},
              .aux = {},
              .out = fc2,
              .bias_gradient = {},
              .m = rows,
              .n = h,
              .k = lf,
              .transpose_b = true},
       "fc2", fwd);
  all_reduce_tensor(fc2, "fc2", fwd);
  in_ = fc2, residual_ = a.sum2, bias_ = p + "fc2.bias";
}

void Stage::loss(MicroBatch& mb, int micro_batch) {
  const std::int64_t rows = d_.rows, vocab = d_.local_vocab;
  mb.logits = scratch("logits", d_.type, rows * vocab);
  emit(Matmul{.a = mb.last_norm,
              .b = weight("word_embeddings"),
              .bias = {},
              .aux = {},
              .out = mb.logits,
              .bias_gradient = {},
              .m = rows,
              .n = vocab,
              .k = d_.hidden,
              .transpose_b = true},
       "head", fwd);
  const View labels = labels_.part(micro_batch * rows, rows);
  if (d_.tensor == 1) {
    emit(CrossEntropy{mb.logits, labels, loss_, rows, vocab, 1 / d_.tokens, 1 / d_.tokens}, "", fwd);
    return;
  }
  // Vocabulary-parallel (Shoeybi et al. 2019): three all-reduces of a number per row. Every tensor rank ends with the
  // same loss and adds its share of it, so that the sum over the world counts it once.
  const View maximum = scratch("ce_maximum", DType::f32, rows), target = scratch("ce_target", DType::f32, rows),
             sum = scratch("ce_sum", DType::f32, rows);
  const Shard shard{Axis::tensor, vocab};
  emit(CrossEntropyMaximum{mb.logits, maximum, rows, vocab}, "", fwd);
  Label label = at_;
  label.phase = fwd, label.what = "loss maximum";
  b_.emit(tensor_stream, AllReduce{tensor_group, maximum, Reduction::max}, label);
  emit(CrossEntropySums{mb.logits, labels, maximum, target, sum, rows, vocab, shard}, "", fwd);
  all_reduce_tensor(target, "loss target", fwd);
  all_reduce_tensor(sum, "loss sum", fwd);
  emit(CrossEntropyGradient{mb.logits, labels, maximum, target, sum, loss_, rows, vocab, shard,
                            1 / (d_.tokens * d_.tensor), 1 / d_.tokens},
       "", fwd);
}

View Stage::forward(int micro_batch, const View& in) {
  at_ = {};
  at_.micro_batch = micro_batch;
  MicroBatch& mb = saved_[static_cast<std::size_t>(micro_batch)];
  mb = {};
  in_ = d_.first() ? embed(micro_batch) : in;
  residual_ = {}, bias_ = "";
  mb.layers.resize(static_cast<std::size_t>(d_.layers));
  for (std::int64_t l = 0; l < d_.layers; ++l) {
    at_.layer = static_cast<std::int32_t>(d_.first_layer + l);
    layer_forward(mb.layers[static_cast<std::size_t>(l)], prefix(d_.first_layer + l));
  }
  at_.layer = -1;
  if (!d_.last()) {
    const View out = activation("stage_out");
    emit(ResidualAdd{in_, weight(bias_), residual_, out, d_.rows, d_.hidden}, "stage output", fwd);
    return out;
  }
  mb.last_sum = activation("last_residual"), mb.last_norm = activation("last_norm");
  mb.last_mean = scratch("last_mean", DType::f32, d_.rows), mb.last_rstd = scratch("last_rstd", DType::f32, d_.rows);
  emit(LayerNorm{in_, weight(bias_), residual_, weight("final_norm.gamma"), weight("final_norm.beta"), mb.last_sum,
                 mb.last_norm, mb.last_mean, mb.last_rstd, d_.rows, d_.hidden},
       "final norm", fwd);
  loss(mb, micro_batch);
  return {};
}

}  // namespace harness::gpt
