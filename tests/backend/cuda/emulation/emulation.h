#pragma once

#include <cstdint>
#include <functional>

struct CUstream_st;

// CUDA's execution model on the host, far enough for the kernels of src/backend/cuda/kernels: a block's threads are
// fibers that run until they meet a barrier, blocks run one after the other. What a GPU leaves open is made as hostile
// as can be: blocks, warps and lanes run in scrambled order, shared memory is full of NaN when a block starts, and
// what would be a fault or undefined on a GPU (a misaligned access, a barrier that only some threads reach, writing
// past shared memory) throws Error. Several host threads may run kernels at a time.
namespace harness::emulation {

/// What kernels are told of their device.
inline constexpr int multiprocessors = 3;
inline constexpr std::int64_t shared_limit_bytes = 227 * 1024;

struct LaunchShape {
  const char* name;
  std::int64_t blocks;
  int threads;  // a multiple of 32, up to 1024
  std::int64_t shared_bytes;
};

/// Runs `thread` once for each thread of each block, on the calling host thread, and returns when all have ended.
void run(const LaunchShape& shape, const std::function<void()>& thread);

/// Where a launch goes: NOT defined here. The tests of kernels run the work at once; the fake GPU puts it on a stream.
void submit(CUstream_st* stream, std::function<void()> work);

}  // namespace harness::emulation
