// The workloads that compute one operation, gemm and attention.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "config/registry.h"
#include "workloads/operations.h"

namespace harness::workloads {
namespace {

// Makes the buffers of an operation. They hold random numbers: matrix units draw less power on zeros and run faster.
class Operands {
 public:
  Operands(ProgramBuilder& builder, const Settings& settings) : b_(builder), type_(element_type(settings)) {}
  View random(const char* name, std::int64_t count) {
    const View v = empty(name, count);
    const View drawn = type_ == DType::f32 ? v : b_.buffer("drawn", DType::f32, count);
    b_.emit(compute_stream, program::Initialize{drawn, next_, Axis::tensor, 1, count, count, 1, 0, 1},
            {"operand", Phase::setup});
    if (type_ != DType::f32) b_.emit(compute_stream, program::Convert{drawn, v}, {"operand", Phase::setup});
    next_ += count;
    return v;
  }
  View empty(const char* name, std::int64_t count) { return b_.buffer(name, type_, count, BufferKind::persistent); }

 private:
  ProgramBuilder& b_;
  DType type_;
  std::int64_t next_ = 0;  // index of the next number to draw
};

// All ranks run the same Program and meet in one group, `world`.
ProgramSet same_on_all_ranks(const Layout& layout, Program program) {
  ProgramSet set;
  set.layout = layout;
  set.groups = {{"world", AxisSet::all(), {}}};
  set.roles.push_back(std::move(program));
  return set;
}

config::GemmShape shape_of(const program::Matmul& m) {
  return {m.m, m.n, m.k, m.transpose_a, m.transpose_b};
}

class GemmWorkload : public Workload {
 public:
  std::string_view name() const override { return "gemm"; }

  ProgramSet programs(const Model&, const Settings& s, const Layout& layout) const override {
    ProgramBuilder builder = step_builder();
    StepFrame frame(builder, 0, "share");
    Operands operands(builder, s);
    const config::GemmShape& g = s.gemm;
    const View a = operands.random("a", g.m * g.k);
    const View b = operands.random("b", g.k * g.n);
    const program::Matmul product{.a = a,
                                  .b = b,
                                  .out = operands.empty("out", g.m * g.n),
                                  .m = g.m,
                                  .n = g.n,
                                  .k = g.k,
                                  .transpose_a = g.transpose_a,
                                  .transpose_b = g.transpose_b};
    return same_on_all_ranks(
        layout, repeated(builder, frame, s, layout, compute_stream, {product}, {"product", Phase::forward}));
  }

  Rate rate(const Settings& s, const Layout&) const override {
    const config::GemmShape& g = s.gemm;
    const std::int64_t elements = g.m * g.k + g.k * g.n + g.m * g.n;
    return {"gemm", s.repetitions, static_cast<double>(elements * program::size_of(element_type(s)))};
  }

  std::vector<std::string> values_from_model(const ProgramSet& training_step, const Settings&) const override {
    std::vector<std::string> shapes;
    for (const Program& program : training_step.roles) {
      for (const Operation& op : program.step) {
        const auto* m = std::get_if<program::Matmul>(&op.action);
        if (m == nullptr) continue;
        Settings s;
        s.gemm = shape_of(*m);
        const std::string text = config::find_variable("gemm")->print(s);
        if (std::ranges::find(shapes, text) == shapes.end()) shapes.push_back(text);
      }
    }
    return shapes;
  }

  std::vector<std::string> uses_in_model(const ProgramSet& training_step, const Settings& s) const override {
    std::vector<std::string> uses;
    for (const Program& program : training_step.roles) {
      for (const Operation& op : program.step) {
        const auto* m = std::get_if<program::Matmul>(&op.action);
        if (m != nullptr && shape_of(*m) == s.gemm) add_use(uses, op.label);
      }
    }
    return uses;
  }
};

class AttentionWorkload : public Workload {
 public:
  std::string_view name() const override { return "attention"; }

  std::string why_impossible(const Model&, const Settings& s) const override {
    const config::AttentionProblem& a = s.attention_shape;
    const auto widest = static_cast<double>(std::max(4 * a.head_dim, a.sequence));  // a row of probabilities, or dqkv
    const double rows = static_cast<double>(a.batch * a.sequence) * static_cast<double>(a.heads);
    if (rows * widest <= 0x1p57) return "";  // beyond, bytes and their sums would overflow 64 bits
    return fmt::format("attention_shape {} is too large: no tensor is as large",
                       config::find_variable("attention_shape")->print(s));
  }

  ProgramSet programs(const Model&, const Settings& s, const Layout& layout) const override {
    ProgramBuilder b = step_builder();
    StepFrame frame(b, 0, "share");
    Operands operands(b, s);
    const config::AttentionProblem& a = s.attention_shape;
    // A token's queries, keys and values are adjacent, as one product writes them in a training step.
    const std::int64_t rows = a.batch * a.sequence, width = a.heads * a.head_dim, kv_width = a.kv_heads() * a.head_dim;
    const std::int64_t stride = width + 2 * kv_width;
    const View qkv = operands.random("qkv", rows * stride);
    const auto columns = [&](const View& v, std::int64_t first, std::int64_t many) {
      return v.part(first, (rows - 1) * stride + many);
    };
    const bool unfused = s.attention == config::AttentionKind::unfused;
    const program::Attention forward{
        .q = columns(qkv, 0, width),
        .k = columns(qkv, width, kv_width),
        .v = columns(qkv, width + kv_width, kv_width),
        .out = operands.empty("out", rows * width),
        .stats = b.buffer("stats", DType::f32, rows * a.heads, BufferKind::persistent),
        .shape = {a.batch, a.heads, a.head_dim, a.sequence, a.sequence, stride, stride, true, a.group},
        .probabilities = unfused ? operands.empty("probabilities", rows * a.heads * a.sequence) : View{}};
    Action operation = forward;
    if (s.attention_backward) {
      b.emit(compute_stream, forward, {"attention", Phase::setup});
      const View dqkv = operands.empty("dqkv", rows * stride);
      operation = program::AttentionBackward{.q = forward.q,
                                             .k = forward.k,
                                             .v = forward.v,
                                             .out = forward.out,
                                             .stats = forward.stats,
                                             .dout = operands.random("dout", rows * width),
                                             .dq = columns(dqkv, 0, width),
                                             .dk = columns(dqkv, width, kv_width),
                                             .dv = columns(dqkv, width + kv_width, kv_width),
                                             .shape = forward.shape,
                                             .probabilities = forward.probabilities};
    }
    const Phase phase = s.attention_backward ? Phase::backward : Phase::forward;
    return same_on_all_ranks(layout, repeated(b, frame, s, layout, compute_stream, {operation}, {"attention", phase}));
  }

  // Forward: queries, keys, values and the output; backward: these, the output's gradient and three gradients. The
  // softmax statistics are one f32 per row and head. Unfused attention also moves the probabilities.
  Rate rate(const Settings& s, const Layout&) const override {
    const config::AttentionProblem& a = s.attention_shape;
    const std::int64_t rows = a.batch * a.sequence, of_each = s.attention_backward ? 4 : 2;
    const std::int64_t kept = s.attention == config::AttentionKind::unfused ? a.sequence : 0;
    const std::int64_t elements = rows * (of_each * (a.heads + a.kv_heads()) * a.head_dim + a.heads * kept);
    const std::int64_t bytes =
        elements * program::size_of(element_type(s)) + rows * a.heads * program::size_of(DType::f32);
    return {s.attention_backward ? "attention_backward" : "attention", s.repetitions, static_cast<double>(bytes)};
  }

  std::vector<std::string> values_from_model(const ProgramSet& training_step, const Settings&) const override {
    std::set<std::string> shapes;
    for (const Program& program : training_step.roles) {
      for (const Operation& op : program.step) {
        const auto* a = std::get_if<program::Attention>(&op.action);
        if (a == nullptr) continue;
        Settings s;
        s.attention_shape = {a->shape.batch, a->shape.heads, a->shape.head_dim, a->shape.query_length, a->shape.group};
        shapes.insert(config::find_variable("attention_shape")->print(s));
      }
    }
    return {shapes.begin(), shapes.end()};
  }
};

}  // namespace

Program repeated(ProgramBuilder& builder, StepFrame& frame, const Settings& settings, const Layout& layout,
                 StreamId stream, const std::vector<Action>& actions, Label label) {
  frame.begin_step();
  frame.set_share(1.0 / layout.ranks());
  for (label.layer = 0; label.layer < settings.repetitions; ++label.layer) {
    const std::int32_t together = actions.size() > 1 ? builder.new_fused_group() : -1;
    for (const Action& action : actions) builder.emit(stream, action, label, {}, together);
  }
  frame.end_step();
  return builder.take();
}

const Workload& gemm_workload() {
  static const GemmWorkload workload;
  return workload;
}

const Workload& attention_workload() {
  static const AttentionWorkload workload;
  return workload;
}

}  // namespace harness::workloads
