#include "backend/cuda/kernels/launch.cuh"

namespace harness::cuda {
namespace {

__global__ void spin_for(std::uint64_t wanted_nanoseconds) {
  if (threadIdx.x != 0) return;
  const std::uint64_t start = nanoseconds();
  while (nanoseconds() - start < wanted_nanoseconds) __nanosleep(500);
}

}  // namespace

void spin(Stream stream, double seconds) {
  launch("spin", spin_for, {1, 32}, stream, static_cast<std::uint64_t>(seconds > 0 ? seconds * 1e9 : 0));
}

}  // namespace harness::cuda
