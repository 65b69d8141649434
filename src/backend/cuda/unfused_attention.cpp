#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "backend/cuda/attention.h"
#include "backend/cuda/kernels/kernels.h"
#include "base/text.h"

namespace harness::cuda {
namespace {

class UnfusedAttention : public AttentionKernel {
 public:
  UnfusedAttention(const program::AttentionShape& shape, program::DType type, bool tf32, bool keeps, Blas& blas)
      : shape_(shape),
        type_(type),
        tf32_(tf32),
        blas_(blas),
        scale_(1 / std::sqrt(static_cast<double>(shape.head_dim))),
        keeps_(keeps),
        scores_(Memory::Kind::device, (keeps ? 1 : 2) * score_count() * program::size_of(type),
                "the scores of unfused attention"),
        delta_(Memory::Kind::device, shape.batch * stats_count() * program::size_of(program::DType::f32),
               "unfused attention") {}

  Run forward(const backend::Bound<program::Attention>& at) override {
    const std::int64_t rows = shape_.query_length, keys = shape_.key_length, width = shape_.head_dim;
    std::vector<Run> runs;
    for (std::int64_t b = 0; b < shape_.batch; ++b) {
      const backend::Tensor q = query(at.q, b), k = key(at.k, b), v = key(at.v, b), stats = of_stats(at.stats, b);
      const backend::Tensor p = probabilities(at.probabilities, b);  // the scores, until the softmax
      for (std::int64_t m = 0; m < shape_.group; ++m) {
        runs.push_back(product({rows, keys, width}, query_matrix(), head(q, m), transposed(key_matrix()), k,
                               score_matrix(), square(p, m)));
      }
      runs.emplace_back([this, p, stats, ids = of_positions(at.position_ids, b)](Stream s) {
        attention_softmax(s, p, stats, ids, shape_, scale_);
      });
      for (std::int64_t m = 0; m < shape_.group; ++m) {
        runs.push_back(product({rows, width, keys}, score_matrix(), square(p, m), key_matrix(), v, dense_matrix(),
                               head(dense(at.out, b), m)));
      }
    }
    return in_turn(std::move(runs));
  }

  Run backward(const backend::Bound<program::AttentionBackward>& at) override {
    const std::int64_t rows = shape_.query_length, keys = shape_.key_length, width = shape_.head_dim;
    std::vector<Run> runs;
    const backend::Tensor delta{delta_.data(), program::DType::f32, shape_.batch * stats_count()};
    runs.emplace_back([this, at, delta](Stream s) { attention_delta(s, at.out, at.dout, delta, shape_); });
    for (std::int64_t b = 0; b < shape_.batch; ++b) {
      const backend::Tensor q = query(at.q, b), k = key(at.k, b), v = key(at.v, b), dout = dense(at.dout, b);
      const backend::Tensor stats = of_stats(at.stats, b), row_delta = of_stats(delta, b);
      const backend::Tensor p = probabilities(at.probabilities, b);
      const backend::Tensor dp = scores(keeps_ ? 0 : 1);  // becomes the scores' gradient
      if (!keeps_) {
        for (std::int64_t m = 0; m < shape_.group; ++m) {
          runs.push_back(product({rows, keys, width}, query_matrix(), head(q, m), transposed(key_matrix()), k,
                                 score_matrix(), square(p, m)));
        }
        runs.emplace_back([this, p, stats, ids = of_positions(at.position_ids, b)](Stream s) {
          attention_probabilities(s, p, stats, ids, shape_, scale_);
        });
      }
      // The gradients of keys and values are sums over the group.
      for (std::int64_t m = 0; m < shape_.group; ++m) {
        runs.push_back(product({rows, keys, width}, dense_matrix(), head(dout, m), transposed(key_matrix()), v,
                               score_matrix(), square(dp, m)));
        runs.push_back(product({keys, width, rows}, transposed(score_matrix()), square(p, m), dense_matrix(),
                               head(dout, m), key_matrix(), key(at.dv, b), at.accumulate || m > 0));
      }
      runs.emplace_back([this, p, dp, row_delta](Stream s) {
        attention_softmax_backward(s, p, dp, row_delta, shape_.heads, shape_.query_length, shape_.key_length, scale_);
      });
      for (std::int64_t m = 0; m < shape_.group; ++m) {
        runs.push_back(product({rows, width, keys}, score_matrix(), square(dp, m), key_matrix(), k, query_matrix(),
                               head(query(at.dq, b), m), at.accumulate));
        runs.push_back(product({keys, width, rows}, transposed(score_matrix()), square(dp, m), query_matrix(),
                               head(q, m), key_matrix(), key(at.dk, b), at.accumulate || m > 0));
      }
    }
    return in_turn(std::move(runs));
  }

 private:
  static Run in_turn(std::vector<Run> runs) {
    return [runs = std::move(runs)](Stream s) {
      for (const Run& run : runs) run(s);
    };
  }
  static Matrix transposed(Matrix m) {
    m.transposed = !m.transposed;
    return m;
  }

  std::int64_t width() const { return shape_.heads * shape_.head_dim; }
  std::int64_t square_count() const { return shape_.query_length * shape_.key_length; }
  std::int64_t score_count() const { return shape_.heads * square_count(); }
  std::int64_t stats_count() const { return shape_.heads * shape_.query_length; }

  // One head of keys after the other is the batch of a product, each with one member of its group of query heads.
  Matrix query_matrix() const { return {type_, false, shape_.query_stride, shape_.group * shape_.head_dim}; }
  Matrix key_matrix() const { return {type_, false, shape_.key_stride, shape_.head_dim}; }
  Matrix dense_matrix() const { return {type_, false, width(), shape_.group * shape_.head_dim}; }
  Matrix score_matrix() const { return {type_, false, shape_.key_length, shape_.group * square_count()}; }
  // From a member of the first group on.
  backend::Tensor head(const backend::Tensor& t, std::int64_t member) const {
    return shifted(t, member * shape_.head_dim);
  }
  backend::Tensor square(const backend::Tensor& t, std::int64_t member) const {
    return shifted(t, member * square_count());
  }

  // The part of sequence b.
  backend::Tensor shifted(const backend::Tensor& t, std::int64_t elements) const {
    return {t.as<std::byte>() + elements * program::size_of(t.type), t.type, t.count};
  }
  backend::Tensor query(const backend::Tensor& t, std::int64_t b) const {
    return shifted(t, b * shape_.query_length * shape_.query_stride);
  }
  backend::Tensor key(const backend::Tensor& t, std::int64_t b) const {
    return shifted(t, b * shape_.key_length * shape_.key_stride);
  }
  backend::Tensor dense(const backend::Tensor& t, std::int64_t b) const {
    return shifted(t, b * shape_.query_length * width());
  }
  backend::Tensor of_positions(const backend::Tensor& t, std::int64_t b) const {
    return t.present() ? shifted(t, b * shape_.query_length) : t;
  }
  backend::Tensor of_stats(const backend::Tensor& t, std::int64_t b) const {
    backend::Tensor part = shifted(t, b * stats_count());
    part.count = stats_count();
    return part;
  }
  backend::Tensor probabilities(const backend::Tensor& kept, std::int64_t b) const {
    if (kept.present() != keeps_) fail("unfused attention was prepared for operations of another kind");
    backend::Tensor part = keeps_ ? shifted(kept, b * score_count()) : scores(0);
    part.count = score_count();
    return part;
  }
  backend::Tensor scores(int which) const {
    return {scores_.data() + which * score_count() * program::size_of(type_), type_, score_count()};
  }

  struct Size {
    std::int64_t m, n, k;
  };
  Run product(const Size& size, const Matrix& a, const backend::Tensor& at_a, const Matrix& b,
              const backend::Tensor& at_b, const Matrix& out, const backend::Tensor& at_out, bool accumulate = false) {
    Product p;
    p.batch = shape_.kv_heads();
    p.m = size.m;
    p.n = size.n;
    p.k = size.k;
    p.a = a;
    p.b = b;
    p.out = out;
    p.accumulate = accumulate;
    p.tf32 = tf32_ && type_ == program::DType::f32;
    for (const Matrix* m : {&a, &b, &out}) {
      p.alignment_bytes = std::min(p.alignment_bytes, alignment_of(m->batch_stride * program::size_of(type_)));
    }
    for (const void* address : {at_a.data, at_b.data, at_out.data}) {
      p.alignment_bytes = std::min(p.alignment_bytes, alignment_of(address));
    }
    Operands at;
    at.a = at_a;
    at.b = at_b;
    at.out = at_out;
    return blas_.prepare(p, at, {true, "", 0});
  }

  const program::AttentionShape shape_;
  program::DType type_;
  bool tf32_;
  Blas& blas_;
  double scale_;
  bool keeps_;
  Memory scores_, delta_;
};

}  // namespace

std::unique_ptr<AttentionKernel> make_unfused_attention(const program::AttentionShape& shape, program::DType type,
                                                        bool tf32, bool keeps_probabilities, Blas& blas) {
  return std::make_unique<UnfusedAttention>(shape, type, tf32, keeps_probabilities, blas);
}

}  // namespace harness::cuda
