#include <set>

#include "config/registry.h"
#include "workloads/operations.h"
#include "workloads/step.h"

namespace harness::workloads {
namespace {

// A token's queries, keys and values side by side, as one product makes them in a training step.
struct PackedRow {
  explicit PackedRow(const config::AttentionProblem& a)
      : width(a.heads * a.head_dim), kv_width(a.kv_heads() * a.head_dim), stride(width + 2 * kv_width) {}
  std::int64_t keys() const { return width; }
  std::int64_t values() const { return width + kv_width; }

  std::int64_t width, kv_width, stride;
};

class AttentionWorkload : public Workload {
 public:
  std::string_view name() const override { return "attention"; }

  program::ProgramSet programs(const config::Model&, const config::Settings& s,
                               const program::Layout& layout) const override {
    program::ProgramBuilder b = step_builder();
    StepFrame frame(b, 0, "share");
    Operands operands(b, s);
    const config::AttentionProblem& a = s.attention_shape;
    const std::int64_t rows = a.batch * a.sequence;
    const PackedRow row(a);
    const program::View qkv = operands.random("qkv", rows * row.stride);
    const auto columns = [&](const program::View& v, std::int64_t first, std::int64_t width) {
      return v.part(first, (rows - 1) * row.stride + width);
    };
    const bool unfused = s.attention == config::AttentionKind::unfused;
    const program::Attention forward{
        .q = columns(qkv, 0, row.width),
        .k = columns(qkv, row.keys(), row.kv_width),
        .v = columns(qkv, row.values(), row.kv_width),
        .out = operands.empty("out", rows * row.width),
        .stats = b.buffer("stats", program::DType::f32, rows * a.heads, program::BufferKind::persistent),
        .shape = {a.batch, a.heads, a.head_dim, a.sequence, a.sequence, row.stride, row.stride, true, a.group},
        .probabilities = unfused ? operands.empty("probabilities", rows * a.heads * a.sequence) : program::View{}};
    program::Action repeated = forward;
    if (s.attention_backward) {
      b.emit(compute_stream, forward, {"attention", program::Phase::setup});
      const program::View dqkv = operands.empty("dqkv", rows * row.stride);
      repeated = program::AttentionBackward{.q = forward.q,
                                            .k = forward.k,
                                            .v = forward.v,
                                            .out = forward.out,
                                            .stats = forward.stats,
                                            .dout = operands.random("dout", rows * row.width),
                                            .dq = columns(dqkv, 0, row.width),
                                            .dk = columns(dqkv, row.keys(), row.kv_width),
                                            .dv = columns(dqkv, row.values(), row.kv_width),
                                            .shape = forward.shape,
                                            .probabilities = forward.probabilities};
    }
    frame.begin_step();
    frame.set_share(1.0 / layout.ranks());
    const program::Phase phase = s.attention_backward ? program::Phase::backward : program::Phase::forward;
    for (int i = 0; i < s.repetitions; ++i) b.emit(compute_stream, repeated, {"attention", phase, -1, i});
    frame.end_step();
    return same_on_all_ranks(layout, b.take());
  }

  // Forward: queries, keys, values and the output; backward: these, the output's gradient and three gradients. The
  // statistics of the softmax are one f32 per row and head. Unfused, the probabilities move besides.
  Rate rate(const config::Settings& s, const program::Layout&) const override {
    const config::AttentionProblem& a = s.attention_shape;
    const std::int64_t rows = a.batch * a.sequence, of_each = s.attention_backward ? 4 : 2;
    const std::int64_t kept = s.attention == config::AttentionKind::unfused ? a.sequence : 0;
    const std::int64_t elements = rows * (of_each * (a.heads + a.kv_heads()) * a.head_dim + a.heads * kept);
    const std::int64_t bytes =
        elements * program::size_of(element_type(s)) + rows * a.heads * program::size_of(program::DType::f32);
    return {s.attention_backward ? "attention_backward" : "attention", s.repetitions, static_cast<double>(bytes)};
  }

  std::vector<std::string> values_from_model(const program::ProgramSet& training_step,
                                             const config::Settings&) const override {
    std::set<std::string> shapes;
    for (const program::Program& program : training_step.roles) {
      for (const program::Operation& op : program.step) {
        const auto* a = std::get_if<program::Attention>(&op.action);
        if (a == nullptr) continue;
        config::Settings s;
        s.attention_shape = {a->shape.batch, a->shape.heads, a->shape.head_dim, a->shape.query_length, a->shape.group};
        shapes.insert(config::find_variable("attention_shape")->print(s));
      }
    }
    return {shapes.begin(), shapes.end()};
  }
};

}  // namespace

const Workload& attention_workload() {
  static const AttentionWorkload workload;
  return workload;
}

}  // namespace harness::workloads
