#pragma once

#include <tuple>

#include "backend/cuda/kernels/kernels.h"
#include "backend/cuda/kernels/vectors.cuh"

#ifdef HARNESS_EMULATED_CUDA
#include "backend/cuda/emulation/emulation.h"
#endif

namespace harness::cuda {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Threads for n pieces of work per block: whole warps, at most `limit`.
inline int threads_for(std::int64_t n, int limit) {
  const std::int64_t warps = ceil_div(n < 1 ? 1 : n, 32);
  return warps * 32 < limit ? static_cast<int>(warps * 32) : limit;
}

/// A kernel's element type, and how many elements of it a thread accesses at once.
template <class T, int n>
struct Lanes {};

/// Calls f(Lanes<T, n>) for rows of `width` elements of this type: n elements fill 16 bytes if that divides a row, else
/// n = 1.
template <class F>
void with_lanes(program::DType type, std::int64_t width, const F& f) {
  backend::with_type(type, [&](auto tag) {
    using T = decltype(tag);
    width % lanes_of<T> == 0 ? f(Lanes<T, lanes_of<T>>{}) : f(Lanes<T, 1>{});
  });
}

// The only way to start a kernel. Converts the arguments to the parameters' types. Does nothing for 0 blocks.
#ifdef HARNESS_EMULATED_CUDA

inline DeviceLimits device_limits() {
  return {emulation::multiprocessors, emulation::shared_limit_bytes};
}

template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const Grid& grid, Stream stream, Arguments... arguments) {
  if (grid.blocks == 0) return;
  const auto work = [=] {
    emulation::run({name, grid.blocks, grid.threads, grid.shared_bytes},
                   [&] { kernel(static_cast<Parameters>(arguments)...); });
  };
  emulation::submit(stream, work);
}

#else

template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const Grid& grid, Stream stream, Arguments... arguments) {
  if (grid.blocks == 0) return;
  std::tuple<Parameters...> values{static_cast<Parameters>(arguments)...};
  std::apply(
      [&](auto&... value) {
        void* addresses[] = {&value...};
        launch_kernel(name, reinterpret_cast<const void*>(kernel), grid, stream, addresses);
      },
      values);
}

#endif

// Two forms of elementwise kernels. An operation says what they do per element: a struct of pointers with
//   lanes                                      elements per access,
//   In<n>                                      what it loads for n elements,
//   load<n>(i, ...) -> In<n>, store<n>(i, ...) from what was loaded to what is written.
// The kernels load several pieces before the first store, to keep enough loads in flight.

constexpr int map_threads = 256, map_pieces = 4;

/// Over consecutive elements: load<n>(i), store<n>(i, in).
template <class Operation>
__global__ void __launch_bounds__(map_threads) map_flat(Operation operation, std::int64_t count) {
  constexpr int n = Operation::lanes;
  constexpr int tile = map_threads * map_pieces * n;
  const std::int64_t base = static_cast<std::int64_t>(blockIdx.x) * tile;
  if (base + tile <= count) {
    typename Operation::template In<n> in[map_pieces];
    const std::int64_t first = base + threadIdx.x * n;
#pragma unroll
    for (int p = 0; p < map_pieces; ++p) in[p] = operation.template load<n>(first + p * map_threads * n);
#pragma unroll
    for (int p = 0; p < map_pieces; ++p) operation.template store<n>(first + p * map_threads * n, in[p]);
  } else {
    for (std::int64_t i = base + threadIdx.x; i < count; i += map_threads) {
      operation.template store<1>(i, operation.template load<1>(i));
    }
  }
}

template <class Operation>
void launch_flat(const char* name, Stream stream, const Operation& operation, std::int64_t count) {
  const std::int64_t tile = map_threads * map_pieces * Operation::lanes;
  launch(name, map_flat<Operation>, {ceil_div(count, tile), map_threads}, stream, operation, count);
}

/// Over rows: load<n>(row, c), store<n>(row, c, column, in). A thread takes the same columns of several rows and loads
/// column<n>(c) once for them. n divides the width.
template <class Operation, int n>
__global__ void __launch_bounds__(map_threads)
    map_rows(Operation operation, std::int64_t rows, std::int64_t width, int tiles) {
  const std::int64_t c = (static_cast<std::int64_t>(blockIdx.x % tiles) * blockDim.x + threadIdx.x) * n;
  if (c >= width) return;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x / tiles) * map_pieces;
  const auto column = operation.template column<n>(c);
  typename Operation::template In<n> in[map_pieces];
#pragma unroll
  for (int p = 0; p < map_pieces; ++p) {
    if (row + p < rows) in[p] = operation.template load<n>(row + p, c);
  }
#pragma unroll
  for (int p = 0; p < map_pieces; ++p) {
    if (row + p < rows) operation.template store<n>(row + p, c, column, in[p]);
  }
}

template <class Operation>
void launch_rows(const char* name, Stream stream, const Operation& operation, std::int64_t rows, std::int64_t width) {
  const auto start = [&](auto kernel, int n) {
    const int threads = threads_for(ceil_div(width, n), map_threads);
    const std::int64_t tiles = ceil_div(ceil_div(width, n), threads);
    launch(name, kernel, {tiles * ceil_div(rows, map_pieces), threads}, stream, operation, rows, width, tiles);
  };
  constexpr int n = Operation::lanes;
  width % n == 0 ? start(map_rows<Operation, n>, n) : start(map_rows<Operation, 1>, 1);
}

}  // namespace harness::cuda
