#include "workloads/gpt_stage.h"

namespace harness::gpt {
namespace {
constexpr Phase bwd = Phase::backward;
}

// `g` is the gradient of the residual stream after the layer; returns that before it. Each input gradient is emitted
// before the weight gradient of the same product: its all-reduce then runs behind the weight gradient.
View Stage::layer_backward(const LayerActivations& a, const std::string& p, const View& g, bool bias_below) {
  const std::int64_t rows = d_.rows, h = d_.hidden, lh = d_.local_hidden, lf = d_.local_ffn;
  const auto input_gradient = [&](const View& dy, std::int64_t k, const std::string& w, std::int64_t n, const View& out,
                                  const char* what) {
    emit(
        Matmul{
            .a = dy, .b = weight(w), .bias = {}, .aux = {}, .out = out, .bias_gradient = {}, .m = rows, .n = n, .k = k},
        what, bwd);
  };
  const auto weight_gradient = [&](const View& dy, std::int64_t m, const View& x, std::int64_t n, const std::string& w,
                                   const View& bias, const char* what) {
    emit(Matmul{.a = dy,
                .b = x,
                .bias = {},
                .aux = {},
                .out = gradient(w),
                .bias_gradient = bias,
                .m = m,
                .n = n,
                .k = rows,
                .transpose_a = true,
                .accumulate = accumulate_},
         what, bwd);
  };

  const View dfc1 = scratch("dfc1", d_.type, rows * lf);
  emit(Matmul{.a = g,
              .b = weight(p + "fc2.weight"),
              .bias = {},
              .aux = a.fc1_in,
              .out = dfc1,
              .bias_gradient = {},
              .m = rows,
              .n = lf,
              .k = h,
              .epilogue = Epilogue::gelu_backward},
       "fc2 input gradient", bwd);
  weight_gradient(g, h, a.fc1_out, lf, p + "fc2.weight", {}, "fc2 weight gradient");

  const View dnorm2 = activation("dnorm2");
  input_gradient(dfc1, lf, p + "fc1.weight", h, dnorm2, "fc1 input gradient");
  all_reduce_tensor(dnorm2, "fc1 input gradient", bwd);
  weight_gradient(dfc1, lf, a.norm2, h, p + "fc1.weight", gradient(p + "fc1.bias"), "fc1 weight gradient");

  const View g2 = activation("dresidual2");
  emit(
      LayerNormBackward{dnorm2, a.sum2, weight(p + "norm2.gamma"), a.mean2, a.rstd2, g, g2, gradient(p + "norm2.gamma"),
                        gradient(p + "norm2.beta"), gradient(p + "projection.bias"), rows, h, accumulate_},
      "norm2", bwd);

  const View dattention = scratch("dattention", d_.type, rows * lh);
  input_gradient(g2, h, p + "projection.weight", lh, dattention, "projection input gradient");
  weight_gradient(g2, h, a.attention, lh, p + "projection.weight", {}, "projection weight gradient");

  const View dqkv = scratch("dqkv", d_.type, rows * 3 * lh);
  const std::int64_t span = (rows - 1) * 3 * lh + lh;
  emit(AttentionBackward{a.qkv.part(0, span), a.qkv.part(lh, span), a.qkv.part(2 * lh, span), a.attention, a.stats,
                         dattention, dqkv.part(0, span), dqkv.part(lh, span), dqkv.part(2 * lh, span), shape_},
       "", bwd);
  const View dnorm1 = activation("dnorm1");
  input_gradient(dqkv, 3 * lh, p + "qkv.weight", h, dnorm1, "qkv input gradient");
  all_reduce_tensor(dnorm1, "qkv input gradient", bwd);
  weight_gradient(dqkv, 3 * lh, a.norm1, h, p + "qkv.weight", gradient(p + "qkv.bias"), "qkv weight gradient");

  const View g1 = activation("dresidual1");
  LayerNormBackward norm1{dnorm1,
                          a.sum1,
                          weight(p + "norm1.gamma"),
                          a.mean1,
                          a.rstd1,
                          g2,
                          g1,
                          gradient(p + "norm1.gamma"),
                          gradient(p + "norm1.beta"),
                          {},
                          rows,
                          h,
                          accumulate_};
  if (bias_below) norm1.dbias = gradient(prefix(at_.layer - 1) + "fc2.bias");
  emit(norm1, "norm1", bwd);
  return g1;
}

View Stage::backward(int micro_batch, const View& gradient_in,
                     const std::function<void(const std::string&)>& on_final) {
  at_ = {};
  at_.micro_batch = micro_batch;
  accumulate_ = micro_batch > 0;  // micro-batches go backward in the order in which they went forward
  const auto final = [&](const std::string& name) {
    if (micro_batch + 1 == d_.micro_batches) on_final(name);
  };
  const MicroBatch& mb = saved_[static_cast<std::size_t>(micro_batch)];
  const std::string last_bias = prefix(d_.first_layer + d_.layers - 1) + "fc2.bias";
  View g = gradient_in;
  if (d_.last()) {
    const View dnorm = activation("dlast_norm");
    emit(Matmul{.a = mb.logits,
                .b = weight("word_embeddings"),
                .bias = {},
                .aux = {},
                .out = dnorm,
                .bias_gradient = {},
                .m = d_.rows,
                .n = d_.hidden,
                .k = d_.local_vocab},
         "head input gradient", bwd);
    all_reduce_tensor(dnorm, "head input gradient", bwd);
    emit(Matmul{.a = mb.logits,
                .b = mb.last_norm,
                .bias = {},
                .aux = {},
                .out = gradient("word_embeddings"),
                .bias_gradient = {},
                .m = d_.local_vocab,
                .n = d_.hidden,
                .k = d_.rows,
                .transpose_a = true,
                .accumulate = accumulate_},
         "head weight gradient", bwd);
    if (!d_.first()) final("word_embeddings");
    g = activation("dlast_residual");
    emit(LayerNormBackward{dnorm,
                           mb.last_sum,
                           weight("final_norm.gamma"),
                           mb.last_mean,
                           mb.last_rstd,
                           {},
                           g,
                           gradient("final_norm.gamma"),
                           gradient("final_norm.beta"),
                           gradient(last_bias),
                           d_.rows,
                           d_.hidden,
                           accumulate_},
         "final norm", bwd);
    final("final_norm.gamma"), final("final_norm.beta");
  } else {
    emit(ColumnSum{g, gradient(last_bias), d_.rows, d_.hidden, accumulate_}, "fc2 bias gradient", bwd);
  }
  final(last_bias);
  for (std::int64_t l = d_.layers - 1; l >= 0; --l) {
    at_.layer = static_cast<std::int32_t>(d_.first_layer + l);
    const std::string p = prefix(d_.first_layer + l);
    g = layer_backward(mb.layers[static_cast<std::size_t>(l)], p, g, l > 0);
    for (const char* name : {"fc2.weight", "fc1.weight", "fc1.bias", "norm2.gamma", "norm2.beta", "projection.bias",
                             "projection.weight", "qkv.weight", "qkv.bias", "norm1.gamma", "norm1.beta"}) {
      final(p + name);
    }
    if (l > 0) final(prefix(d_.first_layer + l - 1) + "fc2.bias");
  }
  at_.layer = -1;
  if (!d_.first()) return g;
  emit(EmbeddingBackward{tokens_.part(micro_batch * d_.rows, d_.rows),
                         g,
                         gradient("word_embeddings"),
                         gradient("position_embeddings"),
                         d_.rows,
                         d_.hidden,
                         d_.sequence,
                         {Axis::tensor, d_.local_vocab},
                         accumulate_},
       "", bwd);
  final("position_embeddings"), final("word_embeddings");
  return {};
}

}  // namespace harness::gpt
