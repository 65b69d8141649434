#pragma once

#include <cstdint>
#include <functional>

struct CUstream_st;

// Emulates CUDA's execution model on the host, as far as the kernels of src/backend/cuda/kernels need it: the threads
// of a block are fibers that run until they reach a barrier, and blocks run one after the other. Where a GPU guarantees
// nothing, the emulation is hostile: blocks, warps and lanes run in scrambled order, and shared memory is full of NaN
// when a block starts. A fault or undefined behaviour on a GPU (a misaligned access, a barrier that only some threads
// reach, a write past shared memory) throws Error. Several host threads may run kernels concurrently.
namespace harness::emulation {

/// The device limits that kernels see.
inline constexpr int multiprocessors = 3;
inline constexpr std::int64_t shared_limit_bytes = 227 * 1024;

struct LaunchShape {
  const char* name;
  std::int64_t blocks;
  int threads;  // a multiple of 32, up to 1024
  std::int64_t shared_bytes;
};

/// Calls `thread` once for each thread of each block, on the calling host thread; returns when all have ended.
void run(const LaunchShape& shape, const std::function<void()>& thread);

/// Takes a kernel launch. NOT defined here: the kernel tests run the work at once, the fake GPU enqueues it on a
/// stream.
void submit(CUstream_st* stream, std::function<void()> work);

}  // namespace harness::emulation
