#include <algorithm>
#include <cmath>

#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/vectors.cuh"

namespace harness::cuda {
namespace {

constexpr int most_threads = 256;

struct Heads {
  std::int64_t stride, sequence;
  int heads, head_dim;
  double step;  // of the logarithm to base 2 of a frequency, from one pair to the next
  float sign;
};

// A block takes a row, a thread the same pair of several heads: angle, sine and cosine are computed once for them. They
// are f32 whatever the data are: bf16 would not tell one late position from the next.
template <class T>
__global__ void __launch_bounds__(most_threads) rope_row(T* data, const std::int32_t* position_ids, Heads s) {
  const std::int64_t row = blockIdx.x;
  const int half = s.head_dim / 2, pairs = half < static_cast<int>(blockDim.x) ? half : static_cast<int>(blockDim.x);
  const int lanes = static_cast<int>(blockDim.x) / pairs, lane = static_cast<int>(threadIdx.x) / pairs;
  if (lane >= lanes) return;
  const auto position = static_cast<float>(position_ids ? position_ids[row] : row % s.sequence);
  for (int i = static_cast<int>(threadIdx.x) % pairs; i < half; i += pairs) {
    const auto frequency = static_cast<float>(exp2(s.step * i));
    float sine, cosine;
    sincosf(position * frequency, &sine, &cosine);
    sine *= s.sign;
    for (int h = lane; h < s.heads; h += lanes) {
      T* const at = data + row * s.stride + static_cast<std::int64_t>(h) * s.head_dim + i;
      float a[1], b[1];
      load(at, a);
      load(at + half, b);
      const float turned[1] = {a[0] * cosine - b[0] * sine}, other[1] = {b[0] * cosine + a[0] * sine};
      store(at, turned);
      store(at + half, other);
    }
  }
}

}  // namespace

void run(Stream stream, const backend::Bound<program::Rope>& op, const backend::KernelContext&) {
  const Heads s{op.stride,
                op.sequence,
                static_cast<int>(op.heads),
                static_cast<int>(op.head_dim),
                -2 * std::log2(op.theta) / static_cast<double>(op.head_dim),
                op.backward ? -1.0f : 1.0f};
  backend::with_type(op.data.type, [&](auto tag) {
    using T = decltype(tag);
    launch("rope", rope_row<T>, {op.rows, threads_for(op.heads * op.head_dim / 2, most_threads)}, stream,
           op.data.as<T>(), op.position_ids.i32(), s);
  });
}

}  // namespace harness::cuda
