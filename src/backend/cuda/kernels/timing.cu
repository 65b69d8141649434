#include <algorithm>

#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/reductions.cuh"

namespace harness::cuda {
namespace {

constexpr int difference_threads = 256;

template <class T>
__global__ void __launch_bounds__(difference_threads)
    squared_difference(const T* a, const T* b, std::int64_t count, float* parts) {
  HARNESS_SHARED(float2, shared, max_warps);
  float2 sums = make_float2(0, 0);
  const std::int64_t begin = count * blockIdx.x / gridDim.x, end = count * (blockIdx.x + 1) / gridDim.x;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += difference_threads) {
    const float x = load_one(a + i), y = load_one(b + i);
    sums.x += (x - y) * (x - y);
    sums.y += y * y;
  }
  sums = block_sum(sums, shared);
  if (threadIdx.x != 0) return;
  parts[2 * blockIdx.x] = sums.x;
  parts[2 * blockIdx.x + 1] = sums.y;
}

__global__ void spin_for(std::uint64_t wanted_nanoseconds) {
  if (threadIdx.x != 0) return;
  const std::uint64_t start = nanoseconds();
  while (nanoseconds() - start < wanted_nanoseconds) __nanosleep(500);
}

}  // namespace

int difference(Stream stream, const backend::Tensor& a, const backend::Tensor& b, float* parts) {
  const std::int64_t needed = (a.count + difference_threads - 1) / difference_threads;
  const int blocks = static_cast<int>(std::min<std::int64_t>(needed, max_difference_parts));
  backend::with_type(a.type, [&](auto tag) {
    using T = decltype(tag);
    launch("difference", squared_difference<T>, {blocks, difference_threads}, stream, a.as<const T>(), b.as<const T>(),
           a.count, parts);
  });
  return blocks;
}

void spin(Stream stream, double seconds) {
  launch("spin", spin_for, {1, 32}, stream, static_cast<std::uint64_t>(seconds > 0 ? seconds * 1e9 : 0));
}

}  // namespace harness::cuda
