#include "backend/on_host.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "backend/reference_attention.h"
#include "backend/reference_scales.h"
#include "base/random.h"

namespace harness::test {
namespace {

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

// GELU with the tanh approximation, and its derivative.
double gelu_of(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double gelu_slope(double x) {
  const double c = std::sqrt(2 / M_PI), t = std::tanh(c * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
}

// ---- filling and moving ---------------------------------------------------------------------------------------------

void compute(const program::FillOf<Numbers>& op, const Context&) {
  op.out.fill(op.value);
}

void compute(const program::InitializeOf<Numbers>& op, const Context& context) {
  const std::int64_t first = op.part == op.full ? 0 : context.at[op.axis] * op.part;
  for (std::int64_t at = 0; at < op.out.count(); ++at) {
    const std::int64_t i = at / (op.part * op.inner), j = at / op.inner % op.part, k = at % op.inner;
    const std::int64_t index = op.first_index + (i * op.full + first + j) * op.inner + k;
    op.out[at] = op.mean + op.deviation * philox_normal(context.seed, static_cast<std::uint64_t>(index));
  }
}

void compute(const program::ConvertOf<Numbers>& op, const Context&) {
  for (std::int64_t i = 0; i < op.out.count(); ++i) op.out[i] = op.in[i];
}

void compute(const program::RecordOf<Numbers>& op, const Context&) {
  op.ring[op.counter.whole(0) % op.ring.count()] = op.value[0];
  op.counter[0] += 1;
}

// ---- embedding ------------------------------------------------------------------------------------------------------

// Returns the index of a row's token within this rank's shard; -1 if another rank has it.
std::int64_t local_token(const auto& op, std::int64_t row, const Context& context) {
  const std::int64_t local = op.tokens.whole(row) - context.at[op.shard.axis] * op.shard.rows;
  return local < op.shard.rows ? std::max<std::int64_t>(local, -1) : -1;
}

void compute(const program::EmbeddingOf<Numbers>& op, const Context& context) {
  const bool adds_positions = op.positions.present() && context.at[op.shard.axis] == 0;
  for (std::int64_t r = 0; r < op.rows; ++r) {
    const std::int64_t token = local_token(op, r, context);
    for (std::int64_t c = 0; c < op.width; ++c) {
      const double word = token < 0 ? 0.0 : op.words[token * op.width + c];
      op.out[r * op.width + c] = word + (adds_positions ? op.positions[position_of(op, r) * op.width + c] : 0.0);
    }
  }
}

void compute(const program::EmbeddingBackwardOf<Numbers>& op, const Context& context) {
  if (op.dpositions.present() && !op.accumulate_positions) op.dpositions.fill(0);
  for (std::int64_t r = 0; r < op.rows; ++r) {
    const std::int64_t token = local_token(op, r, context);
    for (std::int64_t c = 0; c < op.width; ++c) {
      const double d = op.dout[r * op.width + c];
      if (token >= 0) op.dwords[token * op.width + c] += d;
      if (op.dpositions.present()) op.dpositions[position_of(op, r) * op.width + c] += d;
    }
  }
}

// ---- residual stream and norms --------------------------------------------------------------------------------------

void compute(const program::ResidualAddOf<Numbers>& op, const Context&) {
  for (std::int64_t i = 0; i < op.rows * op.width; ++i)
    op.out[i] = op.in[i] + or_else(op.bias, i % op.width, 0) + or_else(op.residual, i, 0);
}

void compute(const program::BiasAddOf<Numbers>& op, const Context&) {
  for (std::int64_t i = 0; i < op.rows * op.width; ++i) op.data[i] += op.bias[i % op.width];
}

void compute(const program::ColumnSumOf<Numbers>& op, const Context&) {
  for (std::int64_t c = 0; c < op.width; ++c) {
    double sum = op.accumulate ? op.out[c] : 0.0;
    for (std::int64_t r = 0; r < op.rows; ++r) sum += op.in[r * op.width + c];
    op.out[c] = sum;
  }
}

// LayerNorm subtracts the mean, RmsNorm does not.
template <class Norm>
constexpr bool centres = requires(Norm norm) {
  norm.mean;
};

void forward(const auto& op) {
  constexpr bool centred = centres<decltype(op)>;
  const auto width = static_cast<double>(op.width);
  for (std::int64_t r = 0; r < op.rows; ++r) {
    const std::int64_t first = r * op.width;
    for (std::int64_t c = 0; c < op.width && op.sum.present(); ++c)
      op.sum[first + c] = op.in[first + c] + or_else(op.bias, c, 0) + or_else(op.residual, first + c, 0);
    const std::vector<double> x = (op.sum.present() ? op.sum : op.in).part(first, op.width);
    const double mean = centred ? std::accumulate(x.begin(), x.end(), 0.0) / width : 0;
    double squares = 0;
    for (const double v : x) squares += (v - mean) * (v - mean);
    const double rstd = 1 / std::sqrt(squares / width + op.epsilon);
    op.rstd[r] = rstd;
    if constexpr (centred) op.mean[r] = mean;
    for (std::int64_t c = 0; c < op.width; ++c) {
      double out = (x[c] - mean) * rstd * op.gamma[c];
      if constexpr (centred) out += op.beta[c];
      op.out[first + c] = out;
    }
  }
}

void backward(const auto& op) {
  constexpr bool centred = centres<decltype(op)>;
  const auto before = [&](const Numbers& sums) {
    return op.accumulate && sums.present() ? sums.copy() : std::vector<double>(op.width);
  };
  std::vector<double> dgamma = before(op.dgamma), dbias = before(op.dbias), dbeta;
  if constexpr (centred) dbeta = before(op.dbeta);
  for (std::int64_t r = 0; r < op.rows; ++r) {
    const std::int64_t first = r * op.width;
    double mean = 0;
    if constexpr (centred) mean = op.mean[r];
    const double rstd = op.rstd[r];
    std::vector<double> h(op.width), g(op.width);
    double mean_g = 0, mean_gh = 0;
    for (std::int64_t c = 0; c < op.width; ++c) {
      const double dout = op.dout[first + c];
      h[c] = (op.sum[first + c] - mean) * rstd;
      g[c] = dout * op.gamma[c];
      if (centred) mean_g += g[c] / static_cast<double>(op.width);
      mean_gh += g[c] * h[c] / static_cast<double>(op.width);
      dgamma[c] += dout * h[c];
      if (centred) dbeta[c] += dout;
    }
    for (std::int64_t c = 0; c < op.width; ++c) {
      op.din[first + c] = rstd * (g[c] - mean_g - h[c] * mean_gh) + or_else(op.dresidual, first + c, 0);
      dbias[c] += op.din[first + c];  // sums din as it was stored, after rounding
    }
  }
  for (std::int64_t c = 0; c < op.width; ++c) {
    op.dgamma[c] = dgamma[c];
    if constexpr (centred) op.dbeta[c] = dbeta[c];
    if (op.dbias.present()) op.dbias[c] = dbias[c];
  }
}

void compute(const program::LayerNormOf<Numbers>& op, const Context&) {
  forward(op);
}
void compute(const program::RmsNormOf<Numbers>& op, const Context&) {
  forward(op);
}
void compute(const program::LayerNormBackwardOf<Numbers>& op, const Context&) {
  backward(op);
}
void compute(const program::RmsNormBackwardOf<Numbers>& op, const Context&) {
  backward(op);
}

// ---- products and what stands between them --------------------------------------------------------------------------

void compute(const program::MatmulOf<Numbers>& op, const Context&) {
  const std::vector<double> a = unscaled(op.a, op.a_scale, op.m, op.k), b = unscaled(op.b, op.b_scale, op.n, op.k);
  for (std::int64_t i = 0; i < op.m; ++i) {
    double row_sum = 0;
    for (std::int64_t j = 0; j < op.n; ++j) {
      double x = 0;
      for (std::int64_t k = 0; k < op.k; ++k)
        x += a[op.transpose_a ? k * op.m + i : i * op.k + k] * b[op.transpose_b ? j * op.k + k : k * op.n + j];
      const std::int64_t at = i * op.n + j;
      x += or_else(op.bias, j, 0) + or_else(op.add, at, 0);
      if (op.accumulate) x += op.out[at];
      if (op.epilogue == program::Epilogue::gelu) op.aux[at] = x;
      if (op.epilogue == program::Epilogue::gelu) x = gelu_of(op.aux[at]);
      if (op.epilogue == program::Epilogue::gelu_backward) x *= gelu_slope(op.aux[at]);
      op.out[at] = x;
    }
    if (!op.bias_gradient.present()) continue;
    for (std::int64_t k = 0; k < op.k; ++k) row_sum += a[op.transpose_a ? k * op.m + i : i * op.k + k];
    op.bias_gradient[i] = row_sum + (op.accumulate ? op.bias_gradient[i] : 0.0);
  }
}

void compute(const program::QuantiseOf<Numbers>& op, const Context& context) {
  if (op.either_scale().type() == program::DType::e8m0) {
    for (const bool transposed : {false, true}) quantise_blocks(op, transposed);
  } else {
    double largest = 0;
    for (const double x : op.in.copy()) largest = std::max(largest, std::abs(x));
    const double scale = scale_of(largest, op.either().type());
    op.scale[0] = scale;
    for (std::int64_t i = 0; i < op.rows * op.width; ++i) {
      const double x = op.in[i] / scale;
      if (op.out.present()) op.out[i] = x;
      if (op.out_transposed.present()) op.out_transposed[i % op.width * op.rows + i / op.width] = x;
    }
  }
  if (op.bias_gradient.present())
    compute(program::ColumnSumOf<Numbers>{op.in, op.bias_gradient, op.rows, op.width, op.accumulate}, context);
}

void compute(const program::GeluOf<Numbers>& op, const Context&) {
  for (std::int64_t i = 0; i < op.in.count(); ++i) op.out[i] = gelu_of(op.in[i]);
}

void compute(const program::GeluBackwardOf<Numbers>& op, const Context&) {
  for (std::int64_t i = 0; i < op.in.count(); ++i) op.data[i] = op.data[i] * gelu_slope(op.in[i]);
}

void compute(const program::SwiGluOf<Numbers>& op, const Context&) {
  for (std::int64_t i = 0; i < op.rows * op.width; ++i) {
    const std::int64_t at = i / op.width * 2 * op.width + i % op.width;
    op.out[i] = op.in[at] * logistic(op.in[at]) * op.in[at + op.width];
  }
}

void compute(const program::SwiGluBackwardOf<Numbers>& op, const Context&) {
  for (std::int64_t i = 0; i < op.rows * op.width; ++i) {
    const std::int64_t at = i / op.width * 2 * op.width + i % op.width;
    const double gate = op.in[at], s = logistic(gate), d = op.dout[i];
    op.din[at] = d * op.in[at + op.width] * (s + gate * s * (1 - s));
    op.din[at + op.width] = d * gate * s;
  }
}

// ---- cross-entropy --------------------------------------------------------------------------------------------------

double sum_of_exponentials(const std::vector<double>& x, double maximum) {
  double sum = 0;
  for (const double v : x) sum += std::exp(v - maximum);
  return sum;
}

bool is_left_out(const auto& op, std::int64_t row) {
  return op.scale.present() && op.labels.whole(row) < 0;
}

// logits = gradient_scale * (softmax - onehot). A label outside [0, vocab), as of another rank, subtracts nothing.
void put_gradient(const auto& op, std::int64_t row, std::int64_t label, double maximum, double sum) {
  const double scale = op.gradient_scale * or_else(op.scale, 0, 1) * or_else(op.gradient_factor, 0, 1);
  for (std::int64_t i = 0; i < op.vocab; ++i) {
    const auto x = op.logits[row * op.vocab + i];
    const double here = i == label ? 1 : 0;
    x = is_left_out(op, row) ? 0 : scale * (std::exp(x - maximum) / sum - here);
  }
}

void compute(const program::CrossEntropyOf<Numbers>& op, const Context&) {
  double loss = 0;
  for (std::int64_t r = 0; r < op.rows; ++r) {
    const std::vector<double> x = op.logits.part(r * op.vocab, op.vocab);
    const std::int64_t label = op.labels.whole(r);
    const double maximum = std::ranges::max(x), sum = sum_of_exponentials(x, maximum);
    if (!is_left_out(op, r)) loss += std::log(sum) + maximum - (label >= 0 && label < op.vocab ? x[label] : NAN);
    put_gradient(op, r, label, maximum, sum);
  }
  op.loss[0] += op.loss_scale * or_else(op.scale, 0, 1) * loss;
}

void compute(const program::CrossEntropyMaximumOf<Numbers>& op, const Context&) {
  for (std::int64_t r = 0; r < op.rows; ++r) op.maximum[r] = std::ranges::max(op.logits.part(r * op.vocab, op.vocab));
}

void compute(const program::CrossEntropySumsOf<Numbers>& op, const Context& context) {
  for (std::int64_t r = 0; r < op.rows; ++r) {
    const std::vector<double> x = op.logits.part(r * op.vocab, op.vocab);
    const std::int64_t label = op.labels.whole(r) - context.at[op.shard.axis] * op.shard.rows;
    op.target[r] = label >= 0 && label < op.vocab ? x[label] - op.maximum[r] : 0.0;
    op.sum[r] = sum_of_exponentials(x, op.maximum[r]);
  }
}

void compute(const program::CrossEntropyGradientOf<Numbers>& op, const Context& context) {
  double loss = 0;
  for (std::int64_t r = 0; r < op.rows; ++r) {
    if (!is_left_out(op, r)) loss += std::log(op.sum[r]) - op.target[r];
    const std::int64_t label = op.labels.whole(r) - context.at[op.shard.axis] * op.shard.rows;
    put_gradient(op, r, label, op.maximum[r], op.sum[r]);
  }
  op.loss[0] += op.loss_scale * or_else(op.scale, 0, 1) * loss;
}

// ---- optimizer ------------------------------------------------------------------------------------------------------

void compute(const program::AdamWOf<Numbers>& op, const Context&) {
  if (or_else(op.skip, 0, 0) != 0) return;
  const double step = op.counter[0] + 1, rate = op.learning_rate[0];
  for (std::int64_t i = 0; i < op.master.count(); ++i) {
    const double g = op.gradient[i] / or_else(op.scale, 0, 1);
    const double m = op.beta1 * op.moment1[i] + (1 - op.beta1) * g;
    const double v = op.beta2 * op.moment2[i] + (1 - op.beta2) * g * g;
    const double denominator = std::sqrt(v / (1 - std::pow(op.beta2, step))) + op.epsilon;
    const double w = op.master[i] * (1 - rate * op.weight_decay);
    op.master[i] = w - rate / (1 - std::pow(op.beta1, step)) * m / denominator;
    op.moment1[i] = m;
    op.moment2[i] = v;
    if (op.weights.present()) op.weights[i] = op.master[i];
  }
}

void compute(const program::CheckFiniteOf<Numbers>& op, const Context&) {
  for (const double x : op.in.copy()) {
    if (!std::isfinite(x)) op.found_inf[0] = 1;
  }
}

void compute(const program::UpdateScaleOf<Numbers>& op, const Context&) {
  const bool overflow = op.found_inf[0] != 0;
  op.found_inf[0] = 0;
  if (!overflow) op.updates[0] += 1;
  op.good_steps[0] = overflow ? 0 : op.good_steps[0] + 1;
  if (overflow) op.scale[0] = op.scale[0] * op.backoff;
  if (op.good_steps.whole(0) < op.growth_interval) return;
  op.good_steps[0] = 0;
  if (op.scale[0] * op.growth <= double{std::numeric_limits<float>::max()}) op.scale[0] = op.scale[0] * op.growth;
}

void compute(const program::TopKOf<Numbers>& op, const Context&) {
  for (std::int64_t i = 0; i < op.residual.count(); ++i) op.residual[i] += op.gradient[i];
  const std::vector<double> all = op.residual.copy();
  const auto magnitude = [&](std::int64_t i) { return std::isnan(all[i]) ? HUGE_VAL : std::abs(all[i]); };
  std::vector<std::int64_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater(), magnitude);
  order.resize(op.values.count());
  std::ranges::sort(order);
  for (std::size_t j = 0; j < order.size(); ++j) {
    op.indices[static_cast<std::int64_t>(j)] = static_cast<double>(order[j]);
    op.values[static_cast<std::int64_t>(j)] = all[order[j]];
    op.residual[order[j]] = 0;
  }
}

void compute(const program::ScatterAddOf<Numbers>& op, const Context&) {
  op.out.fill(0);
  for (std::int64_t j = 0; j < op.values.count(); ++j) op.out[op.indices.whole(j)] += op.values[j];
}

struct Loops {
  template <class Op, class Place>
  static void run(const Op& op, const Place& place, const Context& context) {
    const auto numbers = [&](const program::View& view) { return view.present() ? Numbers(place(view)) : Numbers(); };
    if constexpr (requires { compute(program::rebind<Numbers>(op, numbers), context); }) {
      compute(program::rebind<Numbers>(op, numbers), context);
    } else {
      fail("{} computes nothing", Op::name);
    }
  }
};

}  // namespace

const backend::Backend& reference() {
  static const OnHost<Loops, config::BackendKind::cpu> loops;
  return loops;
}

}  // namespace harness::test
