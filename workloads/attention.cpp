#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
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

// A row of the output, or of the queries' gradient, against its definition.
class AttentionCheck : public ProductCheck {
 public:
  AttentionCheck(const config::Settings& s, const program::Program& program)
      : ProductCheck(s, program, s.attention_backward ? "attention_backward" : "attention") {}

  void check(program::BufferAccess& memory) const override {
    const config::AttentionProblem& a = s_.attention_shape;
    const auto queries = samples(a.sequence), batches = samples(a.batch), heads = samples(a.heads);
    for (std::size_t i = 0; i < queries.size(); ++i) check_row(memory, batches[i], heads[i], queries[i]);
  }

 private:
  void check_row(program::BufferAccess& memory, std::int64_t batch, std::int64_t head, std::int64_t query) const {
    const config::AttentionProblem& a = s_.attention_shape;
    const PackedRow row(a);
    const std::int64_t of_query = head * a.head_dim, of_key = head / a.group * a.head_dim;
    const program::View qkv = buffer("qkv");
    const auto vector = [&](const program::View& v, std::int64_t token, std::int64_t width, std::int64_t column) {
      return line(memory, v, (batch * a.sequence + token) * width + column, 1, a.head_dim);
    };
    const auto q = vector(qkv, query, row.stride, of_query);
    const double scale = 1 / std::sqrt(static_cast<double>(a.head_dim));
    std::vector<std::vector<double>> k, v;
    std::vector<double> p;
    for (std::int64_t t = 0; t <= query; ++t) {
      k.push_back(vector(qkv, t, row.stride, row.keys() + of_key));
      v.push_back(vector(qkv, t, row.stride, row.values() + of_key));
      p.push_back(scale * dot(q, k.back()));
    }
    const double highest = *std::ranges::max_element(p);
    double total = 0;
    for (double& x : p) {
      x = std::exp(x - highest);
      total += x;
    }
    for (double& x : p) x /= total;
    std::vector<double> due = weighted(p, v);
    if (s_.attention_backward) {
      // d score = p (dout . v - dout . out), d query = scale * sum of d score * key.
      const auto dout = vector(buffer("dout"), query, row.width, of_query);
      const double mean = dot(dout, due);
      std::vector<double> ds(p.size());
      for (std::size_t t = 0; t < p.size(); ++t) ds[t] = scale * p[t] * (dot(dout, v[t]) - mean);
      due = weighted(ds, k);
    }
    const auto found = s_.attention_backward ? vector(buffer("dqkv"), query, row.stride, of_query)
                                             : vector(buffer("out"), query, row.width, of_query);
    for (std::size_t d = 0; d < due.size(); ++d) {
      compare(fmt::format("batch {}, head {}, query {}, element {}", batch, head, query, d), found[d], due[d], 1);
    }
  }

  std::vector<double> weighted(const std::vector<double>& weights, const std::vector<std::vector<double>>& rows) const {
    std::vector<double> sum(rows.front().size());
    for (std::size_t t = 0; t < rows.size(); ++t) {
      for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += weights[t] * rows[t][d];
    }
    return sum;
  }
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

  std::unique_ptr<OutputCheck> output_check(const config::Settings& s, const program::Layout&,
                                            const program::Coordinates&,
                                            const program::Program& program) const override {
    return std::make_unique<AttentionCheck>(s, program);
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
