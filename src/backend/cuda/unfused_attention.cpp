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
  UnfusedAttention(const AttentionForm& form, bool tf32, Blas& blas)
      : shape_(form.shape),
        type_(form.type),
        tf32_(tf32),
        blas_(blas),
        scale_(1 / std::sqrt(static_cast<double>(shape_.head_dim))),
        keeps_(form.keeps_probabilities),
        scores_(Memory::Kind::device, (keeps_ ? 1 : 2) * score_count() * program::size_of(type_),
                "the scores of unfused attention"),
        delta_(Memory::Kind::device, shape_.batch * stats_count() * program::size_of(program::DType::f32),
               "unfused attention") {}

  Run forward(const backend::Bound<program::Attention>& at) override {
    const std::int64_t rows = shape_.query_length, keys = shape_.key_length, width = shape_.head_dim;
    std::vector<Run> runs;
    for (std::int64_t b = 0; b < shape_.batch; ++b) {
      const backend::Tensor stats = stats_of(at.stats, b), ids = ids_of(at.position_ids, b);
      const backend::Tensor p = probabilities(at.probabilities, b);  // the scores, until the softmax
      for (std::int64_t m = 0; m < shape_.group; ++m) {
        runs.push_back(product(rows, keys, width, query(at.q, b, m), transposed(key(at.k, b)), scores(p, m)));
      }
      runs.emplace_back([=, this](Stream s) { attention_softmax(s, p, stats, ids, shape_, scale_); });
      for (std::int64_t m = 0; m < shape_.group; ++m) {
        runs.push_back(product(rows, width, keys, scores(p, m), key(at.v, b), dense(at.out, b, m)));
      }
    }
    return in_turn(std::move(runs));
  }

  Run backward(const backend::Bound<program::AttentionBackward>& at) override {
    const std::int64_t rows = shape_.query_length, keys = shape_.key_length, width = shape_.head_dim;
    std::vector<Run> runs;
    const backend::Tensor delta{delta_.data(), program::DType::f32, shape_.batch * stats_count()};
    runs.emplace_back([=, this](Stream s) { attention_delta(s, at.out, at.dout, delta, shape_); });
    for (std::int64_t b = 0; b < shape_.batch; ++b) {
      const backend::Tensor stats = stats_of(at.stats, b), row_delta = stats_of(delta, b);
      const backend::Tensor ids = ids_of(at.position_ids, b);
      const backend::Tensor p = probabilities(at.probabilities, b);
      const backend::Tensor dp = own_scores(keeps_ ? 0 : 1);  // becomes the scores' gradient
      if (!keeps_) {
        for (std::int64_t m = 0; m < shape_.group; ++m) {
          runs.push_back(product(rows, keys, width, query(at.q, b, m), transposed(key(at.k, b)), scores(p, m)));
        }
        runs.emplace_back([=, this](Stream s) { attention_probabilities(s, p, stats, ids, shape_, scale_); });
      }
      // The gradients of keys and values are sums over the group.
      for (std::int64_t m = 0; m < shape_.group; ++m) {
        const bool adds = at.accumulate || m > 0;
        runs.push_back(product(rows, keys, width, dense(at.dout, b, m), transposed(key(at.v, b)), scores(dp, m)));
        runs.push_back(product(keys, width, rows, transposed(scores(p, m)), dense(at.dout, b, m), key(at.dv, b), adds));
      }
      runs.emplace_back([=, this](Stream s) {
        attention_softmax_backward(s, p, dp, row_delta, shape_.heads, shape_.query_length, shape_.key_length, scale_);
      });
      for (std::int64_t m = 0; m < shape_.group; ++m) {
        const bool adds = at.accumulate || m > 0;
        runs.push_back(product(rows, width, keys, scores(dp, m), key(at.k, b), query(at.dq, b, m), at.accumulate));
        runs.push_back(product(keys, width, rows, transposed(scores(dp, m)), query(at.q, b, m), key(at.dk, b), adds));
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

  std::int64_t width() const { return shape_.heads * shape_.head_dim; }
  std::int64_t square_count() const { return shape_.query_length * shape_.key_length; }
  std::int64_t score_count() const { return shape_.heads * square_count(); }
  std::int64_t stats_count() const { return shape_.heads * shape_.query_length; }

  static backend::Tensor shifted(const backend::Tensor& t, std::int64_t elements) {
    return {t.as<std::byte>() + elements * program::size_of(t.type), t.type, t.count};
  }

  // A factor or the result of a product. The batch of a product runs over the key heads, each with one member of its
  // group of query heads.
  struct Matrix {
    backend::Tensor first;
    Product::Strides strides;
    bool is_transposed = false;  // before it is multiplied
  };
  static Matrix transposed(Matrix m) {
    m.is_transposed = true;
    return m;
  }
  // Addresses of sequence b.
  Matrix query(const backend::Tensor& t, std::int64_t b, std::int64_t member) const {
    return {shifted(t, b * shape_.query_length * shape_.query_stride + member * shape_.head_dim),
            {shape_.query_stride, shape_.group * shape_.head_dim}};
  }
  Matrix key(const backend::Tensor& t, std::int64_t b) const {
    return {shifted(t, b * shape_.key_length * shape_.key_stride), {shape_.key_stride, shape_.head_dim}};
  }
  Matrix dense(const backend::Tensor& t, std::int64_t b, std::int64_t member) const {
    return {shifted(t, b * shape_.query_length * width() + member * shape_.head_dim),
            {width(), shape_.group * shape_.head_dim}};
  }
  Matrix scores(const backend::Tensor& of_sequence, std::int64_t member) const {
    return {shifted(of_sequence, member * square_count()), {shape_.key_length, shape_.group * square_count()}};
  }

  backend::Tensor ids_of(const backend::Tensor& t, std::int64_t b) const {
    return t.present() ? shifted(t, b * shape_.query_length) : t;
  }
  backend::Tensor stats_of(const backend::Tensor& t, std::int64_t b) const {
    backend::Tensor part = shifted(t, b * stats_count());
    part.count = stats_count();
    return part;
  }
  backend::Tensor probabilities(const backend::Tensor& kept, std::int64_t b) const {
    if (!keeps_) return own_scores(0);
    backend::Tensor part = shifted(kept, b * score_count());
    part.count = score_count();
    return part;
  }
  backend::Tensor own_scores(int which) const {
    return {scores_.data() + which * score_count() * program::size_of(type_), type_, score_count()};
  }

  // out[m, n] = a[m, k] b[k, n]
  Run product(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b, const Matrix& out,
              bool accumulate = false) {
    Product p({.a = a.first,
               .b = b.first,
               .out = out.first,
               .m = m,
               .n = n,
               .k = k,
               .transpose_a = a.is_transposed,
               .transpose_b = b.is_transposed,
               .accumulate = accumulate},
              tf32_);
    p.batch = shape_.kv_heads();
    p.a = a.strides;
    p.b = b.strides;
    p.out = out.strides;
    for (const Matrix* matrix : {&a, &b, &out}) {
      p.alignment_bytes = std::min(p.alignment_bytes, alignment_of(matrix->strides.batch * program::size_of(type_)));
    }
    return blas_.prepare(p, {});
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

std::unique_ptr<AttentionKernel> make_unfused_attention(const AttentionForm& form, bool tf32, Blas& blas) {
  return std::make_unique<UnfusedAttention>(form, tf32, blas);
}

}  // namespace harness::cuda
