#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "selftest/operation_cases.h"

namespace harness::selftest {
namespace {

struct LinearSize {
  std::int64_t rows, in, out;  // of a linear layer: x [rows, in] -> y [rows, out]
  bool large = false;
};

program::Matmul dimensions(std::int64_t m, std::int64_t n, std::int64_t k) {
  program::Matmul op;
  op.m = m;
  op.n = n;
  op.k = k;
  return op;
}

// The forms of one linear layer's products, as the GPT step has them (workloads/gpt), and those that
// the operation allows besides.
class LinearLayer {
 public:
  LinearLayer(Cases& cases, program::DType type, bool tf32, const LinearSize& size)
      : cases_(cases), type_(type), tf32_(tf32), s_(size) {}

  // y = x w^T + bias, with gelu between, or + residual.
  void forward(bool bias, program::Epilogue epilogue, bool residual = false) {
    CaseBuilder b = builder();
    program::Matmul op = dimensions(s_.rows, s_.out, s_.in);
    op.transpose_b = true;
    op.epilogue = epilogue;
    op.a = b.normal("x", s_.rows * s_.in);
    op.b = b.normal("w", s_.out * s_.in, scale(s_.in));
    if (bias) op.bias = b.normal("bias", s_.out);
    if (residual) op.add = b.normal("residual", s_.rows * s_.out);
    if (epilogue == program::Epilogue::gelu) op.aux = b.output("aux", s_.rows * s_.out);
    op.out = b.output("y", s_.rows * s_.out);
    add(b, op,
        std::string("forward") + (bias ? ", bias" : "") + (epilogue == program::Epilogue::gelu ? ", gelu" : "") +
            (residual ? ", residual" : ""));
  }

  // dx = dy w, times gelu'(aux).
  void input_gradient(program::Epilogue epilogue) {
    CaseBuilder b = builder();
    program::Matmul op = dimensions(s_.rows, s_.in, s_.out);
    op.epilogue = epilogue;
    op.a = b.normal("dy", s_.rows * s_.out);
    op.b = b.normal("w", s_.out * s_.in, scale(s_.out));
    if (epilogue == program::Epilogue::gelu_backward) op.aux = b.normal("aux", s_.rows * s_.in, 2);
    op.out = b.output("dx", s_.rows * s_.in);
    add(b, op, std::string("input gradient") + (epilogue == program::Epilogue::none ? "" : ", gelu backward"));
  }

  // dw (+)= dy^T x in f32, and the column sums of dy.
  void weight_gradient(bool bias, bool accumulate) {
    CaseBuilder b = builder();
    program::Matmul op = dimensions(s_.out, s_.in, s_.rows);
    op.transpose_a = true;
    op.accumulate = accumulate;
    op.a = b.normal("dy", s_.rows * s_.out);
    op.b = b.normal("x", s_.rows * s_.in, scale(s_.rows));
    op.out = b.result("dw", program::DType::f32, s_.out * s_.in, accumulate);
    if (bias) op.bias_gradient = b.result("dbias", program::DType::f32, s_.out, accumulate);
    add(b, op, std::string("weight gradient") + (bias ? ", bias gradient" : "") + (accumulate ? ", added" : ""));
  }

  void both_transposed() {
    CaseBuilder b = builder();
    program::Matmul op = dimensions(s_.rows, s_.out, s_.in);
    op.transpose_a = op.transpose_b = true;
    op.a = b.normal("a", s_.rows * s_.in);
    op.b = b.normal("b", s_.out * s_.in, scale(s_.in));
    op.out = b.output("out", s_.rows * s_.out);
    add(b, op, "both transposed");
  }

 private:
  // Keeps results of order one whatever the length of the sums.
  static double scale(std::int64_t k) { return 1 / std::sqrt(static_cast<double>(k)); }
  CaseBuilder builder() const {
    CaseBuilder b(type_, tf32_);
    if (s_.large) b.large();
    return b;
  }
  void add(CaseBuilder& b, const program::Matmul& op, const std::string& name) {
    cases_.push_back(b.take(op, fmt::format("{}, {} x {} x {}", name, op.m, op.n, op.k)));
  }

  Cases& cases_;
  program::DType type_;
  bool tf32_;
  LinearSize s_;
};

}  // namespace

void add_product_cases(Cases& cases, program::DType type, bool tf32) {
  for (const LinearSize& size :
       {LinearSize{17, 19, 33}, LinearSize{64, 96, 128}, LinearSize{48, 64, 1000}, LinearSize{256, 192, 320},
        LinearSize{2048, 2048, 8192, true}, LinearSize{2048, 8192, 2048, true}}) {
    LinearLayer layer(cases, type, tf32, size);
    layer.forward(false, program::Epilogue::none);
    layer.forward(true, program::Epilogue::none);
    layer.forward(true, program::Epilogue::gelu);
    layer.forward(true, program::Epilogue::none, true);
    layer.input_gradient(program::Epilogue::none);
    layer.input_gradient(program::Epilogue::gelu_backward);
    for (const bool bias : {false, true}) {
      for (const bool accumulate : {false, true}) layer.weight_gradient(bias, accumulate);
    }
    if (!size.large) {
      layer.forward(false, program::Epilogue::gelu);
      layer.forward(false, program::Epilogue::none, true);
      layer.both_transposed();
    }
  }
}

void add_loss_cases(Cases& cases, program::DType type) {
  struct Size {
    std::int64_t rows, vocab;  // of the whole table
    int shards, rank;
    bool large = false;
  };
  for (const Size& s :
       {Size{1, 8, 1, 0}, Size{7, 33, 1, 0}, Size{64, 1000, 1, 0}, Size{4, 50304, 1, 0}, Size{1500, 16, 1, 0},
        Size{2, 8191, 1, 0}, Size{24, 1024, 2, 0}, Size{24, 1024, 2, 1}, Size{2048, 50304, 1, 0, true}}) {
    const std::int64_t vocab = s.vocab / s.shards, n = s.rows * vocab;
    const program::Layout layout{{program::Axis::tensor, s.shards}};
    const program::Shard shard{program::Axis::tensor, vocab};
    const std::string name =
        fmt::format("{} x {}{}", s.rows, vocab, s.shards == 1 ? "" : fmt::format(", shard {} of {}", s.rank, s.shards));
    const auto builder = [&] {
      CaseBuilder b(type);
      b.at(layout, s.rank);
      if (s.large) b.large();
      return b;
    };
    // Scaled as fp16 is, or with a factor of all and rows of padding.
    enum class Kind : std::uint8_t { plain, scaled, padded };
    const auto labels = [&](CaseBuilder& b, Kind kind) {
      return b.whole_numbers("labels", s.rows, s.vocab, kind == Kind::padded ? -s.vocab / 3 : 0);
    };
    const auto add_scales = [](CaseBuilder& b, auto& op, Kind kind) {
      if (kind == Kind::scaled) op.gradient_factor = b.constant("gradient_factor", program::DType::f32, 64);
      if (kind == Kind::padded) op.scale = b.constant("scale", program::DType::f32, 0.25);
    };
    const auto word_of = [](Kind kind) {
      constexpr std::array words{"", ", scaled", ", with padding"};
      return words[static_cast<std::size_t>(kind)];
    };
    const double mean = 1 / static_cast<double>(s.rows);
    const auto loss_case = [&](Kind kind) {
      CaseBuilder b = builder();
      program::CrossEntropy loss;
      loss.logits = b.normal("logits", n, 2);
      loss.labels = labels(b, kind);
      loss.loss = b.normal("loss", program::DType::f32, 1);
      loss.rows = s.rows;
      loss.vocab = vocab;
      loss.loss_scale = mean;
      loss.gradient_scale = 0.5;
      add_scales(b, loss, kind);
      cases.push_back(b.take(loss, name + word_of(kind)));
    };
    for (const Kind kind : {Kind::plain, Kind::scaled, Kind::padded}) {
      if (s.shards == 1 && (kind == Kind::plain || !s.large)) loss_case(kind);
    }
    CaseBuilder m = builder();
    const program::View in = m.normal("logits", n, 2);
    const program::CrossEntropyMaximum maximum{in, m.output("maximum", program::DType::f32, s.rows), s.rows, vocab};
    cases.push_back(m.take(maximum, name));

    CaseBuilder t = builder();
    program::CrossEntropySums sums;
    sums.logits = t.normal("logits", n, 2);
    sums.labels = labels(t, Kind::plain);
    sums.maximum = t.output("maximum", program::DType::f32, s.rows);
    sums.target = t.output("target", program::DType::f32, s.rows);
    sums.sum = t.output("sum", program::DType::f32, s.rows);
    sums.rows = s.rows;
    sums.vocab = vocab;
    sums.shard = shard;
    t.prepare(program::CrossEntropyMaximum{sums.logits, sums.maximum, s.rows, vocab});
    cases.push_back(t.take(sums, name));

    const auto gradient_case = [&](Kind kind) {
      CaseBuilder g = builder();
      program::CrossEntropyGradient gradient;
      gradient.logits = g.normal("logits", n, 2);
      gradient.labels = labels(g, kind);
      gradient.maximum = g.output("maximum", program::DType::f32, s.rows);
      gradient.target = g.output("target", program::DType::f32, s.rows);
      gradient.sum = g.output("sum", program::DType::f32, s.rows);
      gradient.loss = g.normal("loss", program::DType::f32, 1);
      gradient.rows = s.rows;
      gradient.vocab = vocab;
      gradient.shard = shard;
      gradient.loss_scale = mean;
      gradient.gradient_scale = 0.5;
      g.prepare(program::CrossEntropyMaximum{gradient.logits, gradient.maximum, s.rows, vocab});
      g.prepare(program::CrossEntropySums{gradient.logits, gradient.labels, gradient.maximum, gradient.target,
                                          gradient.sum, s.rows, vocab, shard});
      add_scales(g, gradient, kind);
      cases.push_back(g.take(gradient, name + word_of(kind)));
    };
    for (const Kind kind : {Kind::plain, Kind::scaled, Kind::padded}) {
      if (kind == Kind::plain || !s.large) gradient_case(kind);
    }
  }
}

}  // namespace harness::selftest
