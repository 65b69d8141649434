#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/numbers.h"

// The attention part of backend/reference.cpp, with the rotation of queries and keys.
namespace harness::test {

using Context = backend::KernelContext;
using program::AttentionShape;

inline double or_else(const Numbers& optional, std::int64_t i, double otherwise) {
  return optional.present() ? static_cast<double>(optional[i]) : otherwise;
}

std::int64_t position_of(const auto& op, std::int64_t row) {
  return op.position_ids.present() ? op.position_ids.whole(row) : row % op.sequence;
}

inline void compute(const program::RopeOf<Numbers>& op, const Context&) {
  for (std::int64_t r = 0; r < op.rows; ++r) {
    for (std::int64_t i = 0; i < op.head_dim / 2; ++i) {
      const double frequency = std::pow(op.theta, -2 * static_cast<double>(i) / static_cast<double>(op.head_dim));
      const double angle = static_cast<double>(position_of(op, r)) * frequency * (op.backward ? -1 : 1);
      for (std::int64_t h = 0; h < op.heads; ++h) {
        const auto x = op.data[r * op.stride + h * op.head_dim + i];
        const auto y = op.data[r * op.stride + h * op.head_dim + i + op.head_dim / 2];
        const double turned = x * std::cos(angle) - y * std::sin(angle);
        y = y * std::cos(angle) + x * std::sin(angle);
        x = turned;
      }
    }
  }
}

// One row of one head: the offsets of its elements, and the keys that it sees.
struct AttentionRow {
  std::int64_t query, result, row, first, end, keys;
  std::int64_t key(const AttentionShape& s, std::int64_t j) const { return keys + j * s.key_stride; }
};

void each_row(const AttentionShape& s, const Numbers& ids, const auto& visit) {
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      for (std::int64_t i = 0; i < s.query_length; ++i) {
        const std::int64_t at = b * s.query_length + i;
        visit(AttentionRow{at * s.query_stride + h * s.head_dim, (at * s.heads + h) * s.head_dim,
                           (b * s.heads + h) * s.query_length + i, ids.present() ? i - ids.whole(at) : 0,
                           s.causal ? std::min(s.key_length, i + 1) : s.key_length,
                           b * s.key_length * s.key_stride + h / s.group * s.head_dim});
      }
    }
  }
}

using Vector = std::vector<double>;

inline double dot(const AttentionShape& s, const Vector& a, std::int64_t at_a, const Vector& b, std::int64_t at_b) {
  double sum = 0;
  for (std::int64_t d = 0; d < s.head_dim; ++d) sum += a[at_a + d] * b[at_b + d];
  return sum;
}

inline double scale_of(const AttentionShape& s) {
  return 1 / std::sqrt(static_cast<double>(s.head_dim));
}

inline void compute(const program::AttentionOf<Numbers>& op, const Context&) {
  const AttentionShape& s = op.shape;
  const Vector q = op.q.copy(), k = op.k.copy(), v = op.v.copy();
  if (op.probabilities.present()) op.probabilities.fill(0);
  each_row(s, op.position_ids, [&](const AttentionRow& row) {
    Vector p(s.key_length), out(s.head_dim);
    double sum = 0;
    for (std::int64_t j = row.first; j < row.end; ++j)
      sum += p[j] = std::exp(dot(s, q, row.query, k, row.key(s, j)) * scale_of(s));
    op.stats[row.row] = std::log(sum);
    for (std::int64_t j = row.first; j < row.end; ++j) {
      if (op.probabilities.present()) op.probabilities[row.row * s.key_length + j] = p[j] / sum;
      for (std::int64_t d = 0; d < s.head_dim; ++d) out[d] += p[j] / sum * v[row.key(s, j) + d];
    }
    for (std::int64_t d = 0; d < s.head_dim; ++d) op.out[row.result + d] = out[d];
  });
}

inline void compute(const program::AttentionBackwardOf<Numbers>& op, const Context&) {
  const AttentionShape& s = op.shape;
  const Vector q = op.q.copy(), k = op.k.copy(), v = op.v.copy(), out = op.out.copy(), dout = op.dout.copy();
  Vector dq(q.size()), dk(k.size()), dv(v.size());
  each_row(s, op.position_ids, [&](const AttentionRow& row) {
    const double delta = dot(s, dout, row.result, out, row.result);
    for (std::int64_t j = row.first; j < row.end; ++j) {
      const std::int64_t key = row.key(s, j);
      const double score = dot(s, q, row.query, k, key) * scale_of(s);
      const double p = or_else(op.probabilities, row.row * s.key_length + j, std::exp(score - op.stats[row.row]));
      const double ds = scale_of(s) * p * (dot(s, dout, row.result, v, key) - delta);
      for (std::int64_t d = 0; d < s.head_dim; ++d) {
        dq[row.query + d] += ds * k[key + d];
        dk[key + d] += ds * q[row.query + d];
        dv[key + d] += p * dout[row.result + d];
      }
    }
  });
  // Skips elements of a row that follow the heads and do not belong to them.
  const auto put = [&](const Numbers& to, const Vector& from, std::int64_t stride, std::int64_t heads) {
    for (std::int64_t i = 0; i < to.count(); ++i) {
      if (i % stride < heads * s.head_dim) to[i] = from[i] + (op.accumulate ? to[i] : 0.0);
    }
  };
  put(op.dq, dq, s.query_stride, s.heads);
  put(op.dk, dk, s.key_stride, s.kv_heads());
  put(op.dv, dv, s.key_stride, s.kv_heads());
}

}  // namespace harness::test
