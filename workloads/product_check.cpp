#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "workloads/elements.h"

namespace harness {
namespace {

// What may be off by rounding: products of tf32 have 10 bits of mantissa, of bf16 7 and so has what is written.
double rounding_of(Precision precision) {
  return precision == Precision::bf16 ? 2e-2 : precision == Precision::tf32 ? 5e-3 : 1e-4;
}

// First, last and some in between.
std::array<std::int64_t, 4> samples(std::int64_t count) {
  return {0, count - 1, count / 2, count * 5 / 7};
}

class ProductCheck : public OutputCheck {
 public:
  ProductCheck(const Settings& s, const Program& program, const char* name)
      : s_(s), program_(program), type_(s.precision == Precision::bf16 ? DType::bf16 : DType::f32), name_(name) {}
  void prepare(BufferAccess&) const override {}  // random operands are there since init

 protected:
  View buffer(const char* name) const { return find_buffer(program_, name); }
  /// `count` elements, `stride` apart.
  std::vector<double> line(BufferAccess& memory, const View& in, std::int64_t first, std::int64_t stride,
                           std::int64_t count) const {
    if (stride == 1) return read_elements(memory, type_, in.part(first, count));
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(read_elements(memory, type_, in.part(first + i * stride, 1)).front());
    }
    return values;
  }
  /// `size`: how large such a number typically is.
  void compare(const std::string& where, double found, double due, double size) const {
    if (std::abs(found - due) <= rounding_of(s_.precision) * (size + std::abs(due))) return;
    fail(
        "{} gives a wrong result: {} is {:g}, it must be {:g}; its time means nothing. Look at what the case changed, "
        "and report it to the library's authors",
        name_, where, found, due);
  }

  Settings s_;
  const Program& program_;
  DType type_;

 private:
  const char* name_;
};

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

class GemmCheck : public ProductCheck {
 public:
  GemmCheck(const Settings& s, const Program& program) : ProductCheck(s, program, "gemm") {}

  void check(BufferAccess& memory) const override {
    const GemmShape& g = s_.gemm;
    const View a = buffer("a"), b = buffer("b"), out = buffer("out");
    const auto rows = samples(g.m), columns = samples(g.n);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::int64_t r = rows[i], c = columns[columns.size() - 1 - i];
      const auto row = g.transpose_a ? line(memory, a, r, g.m, g.k) : line(memory, a, r * g.k, 1, g.k);
      const auto column = g.transpose_b ? line(memory, b, c * g.k, 1, g.k) : line(memory, b, c, g.n, g.k);
      compare(fmt::format("element [{}, {}]", r, c), line(memory, out, r * g.n + c, 1, 1).front(), dot(row, column),
              std::sqrt(static_cast<double>(g.k)));
    }
  }
};

// A row of the output, or of the queries' gradient, against its definition.
class AttentionCheck : public ProductCheck {
 public:
  AttentionCheck(const Settings& s, const Program& program)
      : ProductCheck(s, program, s.attention_backward ? "attention_backward" : "attention") {}

  void check(BufferAccess& memory) const override {
    const AttentionProblem& a = s_.attention_shape;
    const auto queries = samples(a.sequence), batches = samples(a.batch), heads = samples(a.heads);
    for (std::size_t i = 0; i < queries.size(); ++i) check_row(memory, batches[i], heads[i], queries[i]);
  }

 private:
  void check_row(BufferAccess& memory, std::int64_t batch, std::int64_t head, std::int64_t query) const {
    const AttentionProblem& a = s_.attention_shape;
    const std::int64_t width = a.heads * a.head_dim, stride = 3 * width, at = head * a.head_dim;
    const View qkv = buffer("qkv");
    const auto vector = [&](const View& v, std::int64_t token, std::int64_t row, std::int64_t column) {
      return line(memory, v, (batch * a.sequence + token) * row + column + at, 1, a.head_dim);
    };
    const auto q = vector(qkv, query, stride, 0);
    const double scale = 1 / std::sqrt(static_cast<double>(a.head_dim));
    std::vector<std::vector<double>> k, v;
    std::vector<double> p;
    for (std::int64_t t = 0; t <= query; ++t) {
      k.push_back(vector(qkv, t, stride, width));
      v.push_back(vector(qkv, t, stride, 2 * width));
      p.push_back(scale * dot(q, k.back()));
    }
    const double highest = *std::ranges::max_element(p);
    double total = 0;
    for (double& x : p) total += x = std::exp(x - highest);
    for (double& x : p) x /= total;
    std::vector<double> due = weighted(p, v);
    if (s_.attention_backward) {
      // d score = p (dout . v - dout . out), d query = scale * sum of d score * key.
      const auto dout = vector(buffer("dout"), query, width, 0);
      const double mean = dot(dout, due);
      std::vector<double> ds(p.size());
      for (std::size_t t = 0; t < p.size(); ++t) ds[t] = scale * p[t] * (dot(dout, v[t]) - mean);
      due = weighted(ds, k);
    }
    const auto found =
        s_.attention_backward ? vector(buffer("dqkv"), query, stride, 0) : vector(buffer("out"), query, width, 0);
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

}  // namespace

std::unique_ptr<OutputCheck> gemm_check(const Settings& settings, const Program& program) {
  return std::make_unique<GemmCheck>(settings, program);
}

std::unique_ptr<OutputCheck> attention_check(const Settings& settings, const Program& program) {
  return std::make_unique<AttentionCheck>(settings, program);
}

}  // namespace harness
