#include "lt.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/floats.h"
#include "core.h"

namespace harness::fake {
namespace {

float load(const void* data, cudaDataType_t type, std::int64_t index) {
  const auto code = [&] { return static_cast<const std::uint8_t*>(data)[index]; };
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[index];
  if (type == CUDA_R_8F_E4M3) return fp8_to_float(e4m3_format, code());
  if (type == CUDA_R_8F_E5M2) return fp8_to_float(e5m2_format, code());
  return to_float(static_cast<const bf16*>(data)[index]);
}

void store(void* data, cudaDataType_t type, std::int64_t index, float value) {
  if (type == CUDA_R_32F) {
    static_cast<float*>(data)[index] = value;
  } else {
    static_cast<bf16*>(data)[index] = to_bf16(value);
  }
}

// GELU with tanh, and its derivative: x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3) (Hendrycks and Gimpel 2016).
constexpr double gelu_slope = 0.7978845608028654;
constexpr double gelu_cubic = 0.044715;

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(gelu_slope * (x + gelu_cubic * x * x * x)));
}

double gelu_derivative(double x) {
  const double tangent = std::tanh(gelu_slope * (x + gelu_cubic * x * x * x));
  return 0.5 * (1 + tangent) + 0.5 * x * (1 - tangent * tangent) * gelu_slope * (1 + 3 * gelu_cubic * x * x);
}

// Returns op(X) as packed floats in column-major order.
std::vector<float> packed(const LtMatrix& matrix, const void* data, std::int64_t offset) {
  std::vector<float> values(matrix.rows * matrix.cols);
  std::size_t i = 0;
  for (std::int64_t col = 0; col < matrix.cols; ++col) {
    for (std::int64_t row = 0; row < matrix.rows; ++row) {
      values[i++] = load(data, matrix.type, offset + matrix.index(row, col));
    }
  }
  return values;
}

// Returns the scale of an 8-bit element: `outer` is the row of A or the column of B, `along` the index in the sum. A
// block scale is a power of two, stored as in the documentation's figure of a tile: 32 lines of 16 bytes, each with the
// four blocks of four rows side by side.
float scale_of(const LtProblem& problem, const void* scales, std::int64_t outer, std::int64_t along) {
  if (!problem.has_block_scales()) return *static_cast<const float*>(scales);
  const std::int64_t tiles_along = (problem.k + 127) / 128, tile = outer / 128 * tiles_along + along / 128;
  const std::int64_t line = outer % 32, place = outer % 128 / 32 * 4 + along % 128 / 32;
  const int code = static_cast<const std::uint8_t*>(scales)[512 * tile + 16 * line + place];
  return code == 255 ? NAN : std::ldexp(1.0F, code - 127);
}

void apply_scales(const LtProblem& problem, std::vector<float>& a, std::vector<float>& b) {
  for (std::int64_t l = 0; l < problem.k; ++l) {
    for (std::int64_t i = 0; i < problem.m; ++i)
      a[l * problem.m + i] *= scale_of(problem, problem.descriptor.a_scale, i, l);
    for (std::int64_t j = 0; j < problem.n; ++j)
      b[j * problem.k + l] *= scale_of(problem, problem.descriptor.b_scale, j, l);
  }
}

// Not sanitized: checking each access would take a fifth of all training time on the emulated device with sanitizers.
// Safe, because a and b are vectors of these sizes, and the memset of the sums is checked as one access.
__attribute__((no_sanitize("address", "undefined"))) void add_products(const LtProblem& problem,
                                                                       const std::vector<float>& a,
                                                                       const std::vector<float>& b, bool backwards,
                                                                       double* sums) {
  for (std::int64_t j = 0; j < problem.n; ++j) {
    double* column = sums + j * problem.m;
    for (std::int64_t step = 0; step < problem.k; ++step) {
      const std::int64_t l = backwards ? problem.k - 1 - step : step;
      const double factor = b[j * problem.k + l];
      const float* values = a.data() + l * problem.m;
      for (std::int64_t i = 0; i < problem.m; ++i) column[i] += values[i] * factor;
    }
  }
}

void accumulate(const LtProblem& problem, const std::vector<float>& a, const std::vector<float>& b, bool backwards,
                double* sums) {
  std::memset(sums, 0, sizeof *sums * problem.m * problem.n);
  add_products(problem, a, b, backwards, sums);
}

void finish(const MatmulJob& job, const double* sums, int batch) {
  const LtProblem& problem = job.problem;
  const LtDescriptor& descriptor = problem.descriptor;
  const cudaDataType_t type = problem.d.type;
  const double alpha = job.alpha;
  for (std::int64_t j = 0; j < problem.n; ++j) {
    for (std::int64_t i = 0; i < problem.m; ++i) {
      double value = alpha * sums[j * problem.m + i];
      if (job.beta != 0)
        value += double{job.beta} * load(job.c, type, batch * problem.c.batch_step + problem.c.index(i, j));
      if (problem.adds_bias()) value += load(descriptor.bias, type, i);
      const std::int64_t aux = problem.aux.index(i, j);
      if (problem.applies_gelu()) {
        store(descriptor.aux, type, aux, static_cast<float>(value));
        value = gelu(value);
      } else if (problem.applies_gelu_gradient()) {
        value *= gelu_derivative(load(descriptor.aux, type, aux));
      }
      store(job.d, type, batch * problem.d.batch_step + problem.d.index(i, j), static_cast<float>(value));
    }
  }
}

// Sums of op(B)'s columns over k.
void sum_columns(const LtProblem& problem, const std::vector<float>& b) {
  for (std::int64_t j = 0; j < problem.n; ++j) {
    double sum = 0;
    for (std::int64_t l = 0; l < problem.k; ++l) sum += b[j * problem.k + l];
    store(problem.descriptor.bias, problem.d.type, j, static_cast<float>(sum));
  }
}

}  // namespace

void multiply(const MatmulJob& job) {
  const LtProblem& problem = job.problem;
  const int fast = settings().lt_fast_algorithm;
  if (fast >= 0) pass_ns(job.algorithm == fast ? 10'000 : 2'000'000);
  std::vector<double> own;
  double* sums = job.workspace;
  if (sums == nullptr) {
    own.resize(problem.m * problem.n);
    sums = own.data();
  }
  for (int batch = 0; batch < problem.batch_count; ++batch) {
    auto a = packed(problem.a, job.a, batch * problem.a.batch_step);
    auto b = packed(problem.b, job.b, batch * problem.b.batch_step);
    if (is_8_bit(problem.a.type)) apply_scales(problem, a, b);
    const bool wrong = job.algorithm == settings().lt_wrong_algorithm;
    const std::int64_t wrong_elements = settings().lt_wrong_elements;
    if (!wrong || wrong_elements > 0) accumulate(problem, a, b, job.algorithm == 3, sums);
    if (wrong) std::fill_n(sums, wrong_elements > 0 ? wrong_elements : problem.m * problem.n, 0.5);
    // A delay here exposes a workspace that two products use at once.
    if (job.workspace != nullptr) thread_chance().delay();
    finish(job, sums, batch);
    if (problem.sums_b()) sum_columns(problem, b);
  }
}

}  // namespace harness::fake
