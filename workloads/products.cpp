#include "workloads/operations.h"
#include "workloads/step.h"

namespace harness {
namespace {

// Random numbers: matrix units draw less power on zeros and run faster.
class Operands {
 public:
  Operands(ProgramBuilder& builder, const Settings& settings)
      : b_(builder), type_(settings.precision == Precision::bf16 ? DType::bf16 : DType::f32) {}

  View random(const char* name, std::int64_t count) {
    const View v = empty(name, count);
    const View drawn = type_ == DType::f32 ? v : b_.buffer("drawn", DType::f32, count);
    b_.emit(compute_stream, Initialize{drawn, next_, Axis::tensor, 1, count, count, 1, 0, 1},
            {"operand", Phase::setup});
    if (type_ != DType::f32) b_.emit(compute_stream, Convert{drawn, v}, {"operand", Phase::setup});
    next_ += count;
    return v;
  }
  View empty(const char* name, std::int64_t count) { return b_.buffer(name, type_, count, BufferKind::persistent); }

 private:
  ProgramBuilder& b_;
  DType type_;
  std::int64_t next_ = 0;  // index of the next number that is drawn
};

ProgramSet alike(const Layout& layout, Program program) {
  ProgramSet set;
  set.layout = layout;
  set.groups = {{"world", AxisSet::all(), {}}};
  set.roles.push_back(std::move(program));
  return set;
}

}  // namespace

ProgramSet gemm_programs(const Settings& s, const Layout& layout) {
  ProgramBuilder b = step_builder();
  StepFrame frame(b, 0, "share");
  Operands operands(b, s);
  const GemmShape& g = s.gemm;
  Matmul product;
  product.a = operands.random("a", g.m * g.k);
  product.b = operands.random("b", g.k * g.n);
  product.out = operands.empty("out", g.m * g.n);
  product.m = g.m, product.n = g.n, product.k = g.k;
  product.transpose_a = g.transpose_a, product.transpose_b = g.transpose_b;
  frame.begin_step(1.0 / layout.ranks());
  for (int i = 0; i < s.repetitions; ++i) b.emit(compute_stream, product, {"product", Phase::forward, -1, i});
  frame.end_step();
  return alike(layout, b.take());
}

ProgramSet attention_programs(const Settings& s, const Layout& layout) {
  ProgramBuilder b = step_builder();
  StepFrame frame(b, 0, "share");
  Operands operands(b, s);
  const AttentionProblem& a = s.attention_shape;
  const std::int64_t rows = a.batch * a.sequence, width = a.heads * a.head_dim, stride = 3 * width;
  const AttentionShape shape{a.batch, a.heads, a.head_dim, a.sequence, a.sequence, stride, stride, true};
  const std::int64_t span = (rows - 1) * stride + width;
  // One product makes queries, keys and values side by side, as in a training step.
  const View qkv = operands.random("qkv", rows * stride);
  const auto third = [&](const View& v, int which) { return v.part(which * width, span); };
  Attention forward;
  forward.q = third(qkv, 0), forward.k = third(qkv, 1), forward.v = third(qkv, 2);
  forward.out = operands.empty("out", rows * width);
  forward.stats = b.buffer("stats", DType::f32, rows * a.heads, BufferKind::persistent);
  forward.shape = shape;
  AttentionBackward backward;
  if (s.attention_backward) {
    b.emit(compute_stream, forward, {"attention", Phase::setup});
    const View dqkv = operands.empty("dqkv", rows * stride);
    backward.q = forward.q, backward.k = forward.k, backward.v = forward.v;
    backward.out = forward.out, backward.stats = forward.stats;
    backward.dout = operands.random("dout", rows * width);
    backward.dq = third(dqkv, 0), backward.dk = third(dqkv, 1), backward.dv = third(dqkv, 2);
    backward.shape = shape;
  }
  frame.begin_step(1.0 / layout.ranks());
  for (int i = 0; i < s.repetitions; ++i) {
    const Label label{"attention", s.attention_backward ? Phase::backward : Phase::forward, -1, i};
    if (s.attention_backward) {
      b.emit(compute_stream, backward, label);
    } else {
      b.emit(compute_stream, forward, label);
    }
  }
  frame.end_step();
  return alike(layout, b.take());
}

}  // namespace harness
