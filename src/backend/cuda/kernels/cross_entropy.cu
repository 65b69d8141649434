#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/reductions.cuh"

namespace harness::cuda {
namespace {

// One block per row, two blocks per multiprocessor (of 1536 threads or more), so that the active rows fit the L2 cache
// and the gradient reads them from there.
constexpr int row_threads = 768;
[[maybe_unused]] constexpr int loss_rows_at_once = 2;

// Factors of the loss and its gradient. Those that the operation does not have are null.
struct Scales {
  float gradient;
  const float* factor;           // of both; if present, a negative label marks padding
  const float* gradient_factor;  // of the gradient alone
  __device__ __forceinline__ float of_gradient() const {
    const float both = factor ? gradient * *factor : gradient;
    return gradient_factor ? both * *gradient_factor : both;
  }
  __device__ __forceinline__ bool leaves_out(std::int32_t label) const { return factor && label < 0; }
};

template <class T, int n>
__device__ __forceinline__ void write_zeros(T* x, int width) {
  const float zeros[n] = {};
  for (int c = static_cast<int>(threadIdx.x) * n; c < width; c += static_cast<int>(blockDim.x) * n) store(x + c, zeros);
}

// x = scale * (softmax(x) - onehot(label)); onehot is 0 if the label is outside [0, width).
template <class T, int n>
__device__ __forceinline__ void write_gradient(T* x, int width, std::int64_t label, float maximum, float sum,
                                               float scale) {
  const float factor = scale / sum;
  const int one = label >= 0 && label < width ? static_cast<int>(label) : -1;
  const int stride = static_cast<int>(blockDim.x) * n;
  for (int c = static_cast<int>(threadIdx.x) * n; c < width; c += stride) {
    float v[n];
    unpack(load_raw<n, Use::last>(x + c), v);
#pragma unroll
    for (int k = 0; k < n; ++k) v[k] = quick_exp(v[k] - maximum) * factor;
    if (one >= c && one < c + n) {
#pragma unroll
      for (int k = 0; k < n; ++k) v[k] -= c + k == one ? scale : 0.0f;
    }
    store_raw<Use::last>(x + c, pack<T>(v));
  }
}

// Three loads at a time: a thread makes nine for a vocabulary of 50304 in bf16.
template <class T, int n>
__global__ void __launch_bounds__(row_threads, resident_blocks(loss_rows_at_once, row_threads))
    cross_entropy_row(T* logits, const std::int32_t* labels, int width, Scales scales, float* row_losses) {
  HARNESS_SHARED(float2, parts, max_warps);
  T* const x = logits + static_cast<std::int64_t>(blockIdx.x) * width;
  const std::int64_t label = labels[blockIdx.x];
  if (scales.leaves_out(labels[blockIdx.x])) {
    if (threadIdx.x == 0) row_losses[blockIdx.x] = 0.0f;
    return write_zeros<T, n>(x, width);
  }
  ExponentialSum own;
  over_row<3, n>(x, width, [&](int, const float(&v)[n]) { own.add(v); });
  float at_label = 0.0f;
  if (threadIdx.x == 0) {
    // An invalid label makes the loss NaN.
    at_label = label >= 0 && label < width ? load_one(x + label) : __uint_as_float(0x7fc00000u);
  }
  const ExponentialSum all = block_join(own, parts);  // its barrier also protects x[label] until it is read
  if (threadIdx.x == 0) row_losses[blockIdx.x] = logf(all.sum) - (at_label - all.maximum);
  write_gradient<T, n>(x, width, label, all.maximum, all.sum, scales.of_gradient());
}

template <class T, int n>
__global__ void __launch_bounds__(row_threads) maximum_row(const T* logits, int width, float* maximum) {
  HARNESS_SHARED(float, parts, max_warps);
  float high = __uint_as_float(0xff800000u);
  over_row<4, n>(logits + static_cast<std::int64_t>(blockIdx.x) * width, width, [&](int, const float(&v)[n]) {
#pragma unroll
    for (int k = 0; k < n; ++k) high = fmaxf(high, v[k]);
  });
  high = block_maximum(high, parts);
  if (threadIdx.x == 0) maximum[blockIdx.x] = high;
}

template <class T, int n>
__global__ void __launch_bounds__(row_threads)
    sums_row(const T* logits, const std::int32_t* labels, const float* maximum, float* target, float* sum, int width,
             std::int64_t first) {
  HARNESS_SHARED(float, parts, max_warps);
  const T* const x = logits + static_cast<std::int64_t>(blockIdx.x) * width;
  const float high = maximum[blockIdx.x];
  float total = 0;
  over_row<4, n>(x, width, [&](int, const float(&v)[n]) {
#pragma unroll
    for (int k = 0; k < n; ++k) total += quick_exp(v[k] - high);
  });
  total = block_sum(total, parts);
  if (threadIdx.x != 0) return;
  const std::int64_t label = labels[blockIdx.x] - first;
  target[blockIdx.x] = label >= 0 && label < width ? load_one(x + label) - high : 0.0f;
  sum[blockIdx.x] = total;
}

template <class T, int n>
__global__ void __launch_bounds__(row_threads)
    gradient_row(T* logits, const std::int32_t* labels, const float* maximum, const float* target, const float* sum,
                 int width, std::int64_t first, Scales scales, float* row_losses) {
  T* const x = logits + static_cast<std::int64_t>(blockIdx.x) * width;
  if (scales.leaves_out(labels[blockIdx.x])) {
    if (threadIdx.x == 0) row_losses[blockIdx.x] = 0.0f;
    return write_zeros<T, n>(x, width);
  }
  const float total = sum[blockIdx.x];
  if (threadIdx.x == 0) row_losses[blockIdx.x] = logf(total) - target[blockIdx.x];
  write_gradient<T, n>(x, width, labels[blockIdx.x] - first, maximum[blockIdx.x], total, scales.of_gradient());
}

// loss += scale * factor * the sum of the rows, in double precision and always in the same order. One block.
__global__ void __launch_bounds__(1024)
    add_rows(const float* row_losses, std::int64_t rows, double scale, const float* factor, float* loss) {
  HARNESS_SHARED(double, parts, 1024);
  double total = 0;
  for (std::int64_t r = threadIdx.x; r < rows; r += 1024) total += row_losses[r];
  parts[threadIdx.x] = total;
  for (unsigned half = 512; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *loss += static_cast<float>(scale * parts[0]) * (factor ? *factor : 1.0f);
}

Scales scales_of(const auto& op) {
  return {static_cast<float>(op.gradient_scale), op.scale.f32(), op.gradient_factor.f32()};
}

void launch_add_rows(Stream stream, const float* row_losses, const auto& op) {
  launch("cross_entropy (loss)", add_rows, {1, 1024}, stream, row_losses, op.rows, op.loss_scale, op.scale.f32(),
         op.loss.f32());
}

// The fewest threads that cover a row, n elements each, in as few iterations as row_threads would.
int threads_of(std::int64_t width, int n) {
  const std::int64_t pieces = width / n;
  return threads_for(ceil_div(pieces, ceil_div(pieces, row_threads)), row_threads);
}

}  // namespace

std::int64_t scratch_floats(const program::CrossEntropy& op) {
  return op.rows;
}
std::int64_t scratch_floats(const program::CrossEntropyGradient& op) {
  return op.rows;
}

void run(Stream stream, const backend::Bound<program::CrossEntropy>& op, const backend::KernelContext& context) {
  with_lanes(op.logits.type, op.vocab, [&]<class T, int n>(Lanes<T, n>) {
    launch("cross_entropy", cross_entropy_row<T, n>, {op.rows, threads_of(op.vocab, n)}, stream, op.logits.as<T>(),
           op.labels.i32(), op.vocab, scales_of(op), context.scratch);
  });
  launch_add_rows(stream, context.scratch, op);
}

void run(Stream stream, const backend::Bound<program::CrossEntropyMaximum>& op, const backend::KernelContext&) {
  with_lanes(op.logits.type, op.vocab, [&]<class T, int n>(Lanes<T, n>) {
    launch("cross_entropy_maximum", maximum_row<T, n>, {op.rows, threads_of(op.vocab, n)}, stream,
           op.logits.as<const T>(), op.vocab, op.maximum.f32());
  });
}

void run(Stream stream, const backend::Bound<program::CrossEntropySums>& op, const backend::KernelContext& context) {
  const std::int64_t first = backend::first_row(op.shard, context.at);
  with_lanes(op.logits.type, op.vocab, [&]<class T, int n>(Lanes<T, n>) {
    launch("cross_entropy_sums", sums_row<T, n>, {op.rows, threads_of(op.vocab, n)}, stream, op.logits.as<const T>(),
           op.labels.i32(), op.maximum.f32(), op.target.f32(), op.sum.f32(), op.vocab, first);
  });
}

void run(Stream stream, const backend::Bound<program::CrossEntropyGradient>& op,
         const backend::KernelContext& context) {
  const std::int64_t first = backend::first_row(op.shard, context.at);
  with_lanes(op.logits.type, op.vocab, [&]<class T, int n>(Lanes<T, n>) {
    launch("cross_entropy_gradient", gradient_row<T, n>, {op.rows, threads_of(op.vocab, n)}, stream, op.logits.as<T>(),
           op.labels.i32(), op.maximum.f32(), op.target.f32(), op.sum.f32(), op.vocab, first, scales_of(op),
           context.scratch);
  });
  launch_add_rows(stream, context.scratch, op);
}

}  // namespace harness::cuda
