#include "backend/cpu/attention.h"

#include <omp.h>

#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels.h"
#include "backend/cpu/onednn.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/simd.h"

namespace harness::cpu {
namespace {

using simd::get;
using simd::over;
using simd::put;
using simd::Vec;

constexpr std::int64_t cache_bytes = 512 * 1024;  // of scores a thread works on at once: half of a usual L2 cache

// p[0, seen) = exp(scale * s - maximum), zeros up to `all`; returns the sum and the maximum (scaled). p may be s.
template <class T>
std::pair<float, float> exponentials(const float* s, T* p, std::int64_t seen, std::int64_t all, float scale) {
  Vec m = simd::splat(-INFINITY);
  over(0, seen, [&](std::int64_t i, std::int64_t n) { m = simd::max(m, cpu::simd::get(s + i, n, -INFINITY)); });
  const float maximum = simd::largest(m) * scale;
  Vec total{};
  over(0, seen, [&](std::int64_t i, std::int64_t n) {
    const Vec e = simd::exp(cpu::simd::get(s + i, n, -INFINITY) * scale - maximum);
    total += e;
    put(p + i, e, n);
  });
  std::fill(p + seen, p + all, T{});
  return {simd::sum(total), maximum};
}

template <class T>
float dot(const T* a, const T* b, std::int64_t width) {
  Vec total{};
  over(0, width, [&](std::int64_t i, std::int64_t n) { total += get(a + i, n) * get(b + i, n); });
  return simd::sum(total);
}

template <class T>
void scaled_row(T* to, const float* from, float factor, std::int64_t width, bool accumulate) {
  over(0, width, [&](std::int64_t i, std::int64_t n) {
    Vec v = cpu::simd::get(from + i, n) * factor;
    if (accumulate) v += get(to + i, n);
    put(to + i, v, n);
  });
}

std::int64_t padded(std::int64_t n) {
  return (n + 15) / 16 * 16;
}

}  // namespace

// Rows [first, first + rows) of the queries, which see keys [from, from + keys).
struct AttentionKernel::Block {
  std::int64_t first, rows, from, keys, stride;  // stride: between rows of scores
  Product scores, values;                        // forward: q k^T, p v
  std::vector<Product> gradients;                // backward: dout v^T, p^T dout, ds k, ds^T q
};

// The keys that a row of a block sees, counted from the block's first.
struct AttentionKernel::Seen {
  std::int64_t low, high;
};

// heads_together_ KV heads from key_head on, each with one query head (`member`) of its group.
struct AttentionKernel::Unit {
  std::int64_t sequence, key_head, member;
  std::int64_t query_head(const program::AttentionShape& s, std::int64_t h) const {
    return (key_head + h) * s.group + member;
  }
};

// Memory and products of one thread.
struct AttentionKernel::Worker {
  Workspace workspace;
  std::vector<Block> blocks;
  std::vector<float> scores, dscores, rows, dkeys, dvalues;
  std::vector<float> dots;           // per row: 1 / sum of exponentials, or 1 if probabilities are kept
  std::vector<std::uint16_t> p, ds;  // scores in the type of the second products, where that is not f32
};

AttentionKernel::AttentionKernel(const Form& form, int threads)
    : form_(form), scale_(static_cast<float>(1 / std::sqrt(static_cast<double>(form.shape.head_dim)))) {
  const program::AttentionShape& s = form_.shape;
  const program::DType type = form.type;
  const bool backward = form.backward;
  block_rows_ = std::max<std::int64_t>(64, padded((s.query_length + 15) / 16));
  const std::int64_t score_bytes = std::min(block_rows_, s.query_length) * s.key_length * 4;
  const std::int64_t units_wanted = (threads + s.batch - 1) / s.batch;
  for (std::int64_t h = s.kv_heads(); h >= 1; --h) {
    heads_together_ = h;
    if (s.kv_heads() % h == 0 && h * score_bytes <= cache_bytes && s.kv_heads() / h >= units_wanted) break;
  }
  const std::int64_t h = heads_together_, d = s.head_dim;
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);  // each product is run by one thread
  const auto units = static_cast<int>(s.batch * s.kv_heads() / h);
  for (int thread = 0; thread < std::min(threads, units); ++thread) {
    auto w = std::make_unique<Worker>();
    // A product takes one query head (`member`) of each group, so that each has its own KV head.
    const MatrixForm q{type, s.query_stride, 1, s.group * d}, k{type, s.key_stride, 1, d},
        k_t{type, 1, s.key_stride, d};
    const MatrixForm dout{type, s.heads * d, 1, s.group * d};
    // With documents, the same rows have a block for each key block where their document may begin, the latest first.
    const auto add_block = [&](std::int64_t first, std::int64_t from) {
      const std::int64_t rows = std::min(block_rows_, s.query_length - first);
      const std::int64_t keys = (s.causal ? std::min(s.key_length, first + rows) : s.key_length) - from;
      const std::int64_t stride = padded(keys) + 16;  // not a power of two: rows fall into different cache sets
      const MatrixForm score{program::DType::f32, stride, 1, rows * stride}, ds{type, stride, 1, rows * stride};
      const MatrixForm p =
          form.keeps_probabilities ? MatrixForm{type, s.key_length, 1, s.group * s.query_length * s.key_length} : ds;
      const auto transposed = [](MatrixForm m) {
        std::swap(m.row_stride, m.column_stride);
        return m;
      };
      const MatrixForm row{program::DType::f32, d, 1, rows * d}, key{program::DType::f32, d, 1, s.key_length * d};
      Block b{first,
              rows,
              from,
              keys,
              stride,
              Product({.batch = h, .m = rows, .n = keys, .k = d, .a = q, .b = k_t, .out = score}, w->workspace),
              Product({.batch = h, .m = rows, .n = d, .k = keys, .a = p, .b = k, .out = row}, w->workspace),
              {}};
      if (backward) {
        const ProductForm forms[4] = {
            {.batch = h, .m = rows, .n = keys, .k = d, .a = dout, .b = k_t, .out = score},
            {.batch = h, .m = keys, .n = d, .k = rows, .a = transposed(p), .b = dout, .out = key, .accumulate = true},
            {.batch = h, .m = rows, .n = d, .k = keys, .a = ds, .b = k, .out = row},
            {.batch = h, .m = keys, .n = d, .k = rows, .a = transposed(ds), .b = q, .out = key, .accumulate = true}};
        for (const ProductForm& f : forms) b.gradients.emplace_back(f, w->workspace);
      }
      w->blocks.push_back(std::move(b));
    };
    blocks_ = 0;
    for (std::int64_t first = 0; first < s.query_length; first += block_rows_, ++blocks_) {
      for (std::int64_t from = form_.has_documents ? first : 0; from >= 0; from -= block_rows_) add_block(first, from);
    }
    const std::size_t scores = h * block_rows_ * (padded(s.key_length) + 16);
    w->scores.resize(scores);
    w->rows.resize(h * block_rows_ * d);
    w->dots.resize(h * block_rows_);
    if (type != program::DType::f32) w->p.resize(scores);
    if (backward) {
      w->dscores.resize(scores);
      if (type != program::DType::f32) w->ds.resize(scores);
      w->dkeys.resize(h * s.key_length * d);
      w->dvalues.resize(w->dkeys.size());
    }
    workers_.push_back(std::move(w));
  }
  omp_set_num_threads(before);
}

AttentionKernel::~AttentionKernel() = default;

const std::int32_t* AttentionKernel::ids_of(const backend::Tensor& position_ids, const Unit& unit) const {
  return form_.has_documents ? position_ids.i32() + unit.sequence * form_.shape.query_length : nullptr;
}

// Returns the block of this number that begins where its first row's document does: later rows see no earlier keys.
AttentionKernel::Block& AttentionKernel::block_of(Worker& w, std::int64_t number,
                                                  const std::int32_t* position_ids) const {
  if (position_ids == nullptr) return w.blocks[number];
  const std::int64_t first = number * block_rows_;
  const std::int64_t begins = std::clamp<std::int64_t>(first - position_ids[first], 0, first) / block_rows_;
  return w.blocks[number * (number + 1) / 2 + number - begins];
}

AttentionKernel::Seen AttentionKernel::seen_by(const Block& b, std::int64_t row,
                                               const std::int32_t* position_ids) const {
  const std::int64_t at = b.first + row;
  if (position_ids == nullptr) return {0, form_.shape.causal ? std::min(b.keys, at + 1) : b.keys};
  return {std::clamp(at - position_ids[at], b.from, at) - b.from, at + 1 - b.from};
}

template <class T>
struct AttentionKernel::Scores {
  T* first;
  std::int64_t between_rows, between_heads;
  T* row(std::int64_t head, std::int64_t row) const { return first + head * between_heads + row * between_rows; }
};

// Returns where the probabilities lie, in the type of the products that read them: in the kept tensor, if there is one,
// else in this thread's own memory.
template <class T>
AttentionKernel::Scores<T> AttentionKernel::probabilities(Worker& w, const Block& b, const backend::Tensor& kept,
                                                          const Unit& unit) const {
  const program::AttentionShape& s = form_.shape;
  if (kept.present()) {
    const std::int64_t row = (unit.sequence * s.heads + unit.query_head(s, 0)) * s.query_length + b.first;
    return {kept.as<T>() + row * s.key_length + b.from, s.key_length, s.group * s.query_length * s.key_length};
  }
  if constexpr (std::is_same_v<T, float>) {
    return {w.scores.data(), b.stride, b.rows * b.stride};
  } else {
    return {reinterpret_cast<T*>(w.p.data()), b.stride, b.rows * b.stride};
  }
}

template <class F>
void AttentionKernel::over_units(F&& f) {
  const std::int64_t groups = form_.shape.kv_heads() / heads_together_;
  parallel_ranges(form_.shape.batch * groups, 1, [&](std::int64_t first, std::int64_t last, int thread) {
    for (std::int64_t u = first; u < last; ++u) {
      for (std::int64_t member = 0; member < form_.shape.group; ++member) {
        f(*workers_[thread], Unit{u / groups, u % groups * heads_together_, member});
      }
    }
  });
}

template <class T>
void AttentionKernel::forward_unit(Worker& w, const Unit& unit, const backend::Bound<program::Attention>& t) const {
  const program::AttentionShape& s = form_.shape;
  const std::int64_t together = heads_together_, d = s.head_dim, sequence = unit.sequence;
  const std::int64_t head = unit.query_head(s, 0);
  const T* keys = t.k.as<const T>() + sequence * s.key_length * s.key_stride + unit.key_head * d;
  const T* values = t.v.as<const T>() + sequence * s.key_length * s.key_stride + unit.key_head * d;
  const bool keep = t.probabilities.present();
  const std::int32_t* ids = ids_of(t.position_ids, unit);
  for (std::int64_t number = 0; number < blocks_; ++number) {
    Block& b = block_of(w, number, ids);
    const Scores<T> p = probabilities<T>(w, b, t.probabilities, unit);
    const std::int64_t row0 = sequence * s.query_length + b.first;
    b.scores(t.q.as<const T>() + row0 * s.query_stride + head * d, keys + b.from * s.key_stride, w.scores.data());
    for (std::int64_t hr = 0; hr < together * b.rows; ++hr) {
      const std::int64_t h = hr / b.rows, r = hr % b.rows;
      const Seen seen = seen_by(b, r, ids);
      const std::int64_t count = seen.high - seen.low;
      float* const score = w.scores.data() + hr * b.stride + seen.low;
      T* const p_row = p.row(h, r);
      const auto [sum, maximum] = keep ? exponentials(score, score, count, count, scale_)
                                       : exponentials(score, p_row + seen.low, count, b.keys - seen.low, scale_);
      t.stats.f32()[(sequence * s.heads + unit.query_head(s, h)) * s.query_length + b.first + r] =
          maximum + std::log(sum);
      w.dots[hr] = keep ? 1 : 1 / sum;
      if (!keep) {
        std::fill(p_row, p_row + seen.low, T{});
        continue;
      }
      T* const whole_row = p_row - b.from;
      scaled_row(p_row + seen.low, score, 1 / sum, count, false);
      std::fill(whole_row, p_row + seen.low, T{});
      std::fill(p_row + seen.high, whole_row + s.key_length, T{});
    }
    b.values(p.first, values + b.from * s.key_stride, w.rows.data());
    for (std::int64_t hr = 0; hr < together * b.rows; ++hr) {
      const std::int64_t h = hr / b.rows, r = hr % b.rows;
      T* to = t.out.as<T>() + ((row0 + r) * s.heads + unit.query_head(s, h)) * d;
      scaled_row(to, w.rows.data() + hr * d, w.dots[hr], d, false);
    }
  }
}

void AttentionKernel::forward(const backend::Bound<program::Attention>& t) {
  backend::with_type(form_.type, [&](auto tag) {
    over_units([&](Worker& w, const Unit& unit) { forward_unit<decltype(tag)>(w, unit, t); });
  });
}

// With s = scale q k^T and p = exp(s - stats), unless it was kept: dv = p^T dout, dp = dout v^T, ds = scale p (dp -
// dout . out), dq = ds k, dk = ds^T q; dout . out is the row sum of p dp.
template <class T>
void AttentionKernel::backward_unit(Worker& w, const Unit& unit,
                                    const backend::Bound<program::AttentionBackward>& t) const {
  const program::AttentionShape& s = form_.shape;
  const std::int64_t together = heads_together_, d = s.head_dim, sequence = unit.sequence;
  const std::int64_t head = unit.query_head(s, 0);
  const std::int64_t key0 = sequence * s.key_length * s.key_stride + unit.key_head * d;
  const T *keys = t.k.as<const T>() + key0, *values = t.v.as<const T>() + key0;
  T* ds = nullptr;
  if constexpr (std::is_same_v<T, float>) {
    ds = w.dscores.data();
  } else {
    ds = reinterpret_cast<T*>(w.ds.data());
  }
  const bool kept = t.probabilities.present();
  if (unit.member == 0) {
    std::fill(w.dkeys.begin(), w.dkeys.end(), 0.0f);
    std::fill(w.dvalues.begin(), w.dvalues.end(), 0.0f);
  }
  const std::int32_t* ids = ids_of(t.position_ids, unit);
  for (std::int64_t number = 0; number < blocks_; ++number) {
    Block& b = block_of(w, number, ids);
    const T *block_keys = keys + b.from * s.key_stride, *block_values = values + b.from * s.key_stride;
    const std::int64_t row0 = sequence * s.query_length + b.first;
    const T* queries = t.q.as<const T>() + row0 * s.query_stride + head * d;
    const T* dout = t.dout.as<const T>() + row0 * s.heads * d + head * d;
    const T* out = t.out.as<const T>() + row0 * s.heads * d + head * d;
    const Scores<T> p = probabilities<T>(w, b, t.probabilities, unit);
    if (!kept) b.scores(queries, block_keys, w.scores.data());
    b.gradients[0](dout, block_values, w.dscores.data());
    for (std::int64_t hr = 0; hr < together * b.rows; ++hr) {
      const std::int64_t h = hr / b.rows, r = hr % b.rows;
      const Seen seen = seen_by(b, r, ids);
      const float stat = t.stats.f32()[(sequence * s.heads + unit.query_head(s, h)) * s.query_length + b.first + r];
      const std::int64_t at = (r * s.heads + h * s.group) * d;
      const float delta = dot(dout + at, out + at, d);
      const float *score = w.scores.data() + hr * b.stride, *dp = w.dscores.data() + hr * b.stride;
      T *p_row = p.row(h, r), *ds_row = ds + hr * b.stride;
      over(seen.low, seen.high, [&](std::int64_t i, std::int64_t n) {
        const Vec e = kept ? get(p_row + i, n) : simd::exp(cpu::simd::get(score + i, n) * scale_ - stat);
        const Vec g = e * (cpu::simd::get(dp + i, n) - delta) * scale_;
        if (!kept) put(p_row + i, e, n);
        put(ds_row + i, g, n);
      });
      const auto hide = [&](T* row) {
        std::fill(row, row + seen.low, T{});
        std::fill(row + seen.high, row + b.keys, T{});
      };
      if (!kept) hide(p_row);
      hide(ds_row);
    }
    b.gradients[1](p.first, dout, w.dvalues.data() + b.from * d);
    b.gradients[2](ds, block_keys, w.rows.data());
    b.gradients[3](ds, queries, w.dkeys.data() + b.from * d);
    for (std::int64_t hr = 0; hr < together * b.rows; ++hr) {
      const std::int64_t h = hr / b.rows, r = hr % b.rows;
      scaled_row(t.dq.as<T>() + (row0 + r) * s.query_stride + unit.query_head(s, h) * d, w.rows.data() + hr * d, 1, d,
                 t.accumulate);
    }
  }
  if (unit.member + 1 < s.group) return;  // the gradients of keys and values are sums over the group
  for (std::int64_t hj = 0; hj < together * s.key_length; ++hj) {
    const std::int64_t h = hj / s.key_length, j = hj % s.key_length;
    const std::int64_t at = key0 + j * s.key_stride + h * d;
    scaled_row(t.dk.as<T>() + at, w.dkeys.data() + hj * d, 1, d, t.accumulate);
    scaled_row(t.dv.as<T>() + at, w.dvalues.data() + hj * d, 1, d, t.accumulate);
  }
}

void AttentionKernel::backward(const backend::Bound<program::AttentionBackward>& t) {
  backend::with_type(form_.type, [&](auto tag) {
    over_units([&](Worker& w, const Unit& unit) { backward_unit<decltype(tag)>(w, unit, t); });
  });
}

}  // namespace harness::cpu
