// Tests the emulation itself: it must find the faults that it exists to find.
#define HARNESS_EMULATED_CUDA 1
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/reductions.cuh"
#include "backend/cuda/kernels/vectors.cuh"
#include "base/text.h"
#include "support/errors.h"

namespace harness::emulation {

// This program has no streams: run the work at once.
void submit(CUstream_st*, std::function<void()> work) {
  work();
}

}  // namespace harness::emulation

namespace harness::cuda {
namespace {

using ::testing::HasSubstr;

__global__ void reverse(const int* in, int* out, bool wait) {
  HARNESS_SHARED(int, values, 128);
  values[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
  if (wait) __syncthreads();
  out[blockIdx.x * 128 + threadIdx.x] = values[127 - threadIdx.x];
}

int wrong_elements(bool wait) {
  constexpr int blocks = 40;
  std::vector<int> in(blocks * 128), out(in.size(), -1);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i);
  launch("reverse", reverse, {blocks, 128}, nullptr, in.data(), out.data(), wait);
  int wrong = 0;
  for (std::size_t i = 0; i < in.size(); ++i) wrong += out[i] != static_cast<int>(i / 128 * 128 + 127 - i % 128);
  return wrong;
}

TEST(Emulation, ABarrierOrderesSharedMemoryAndItsLackShows) {
  EXPECT_EQ(wrong_elements(true), 0);
  EXPECT_GT(wrong_elements(false), 1000);
}

enum class Fault { none, divergent_warp, divergent_block, past_static, past_dynamic, misaligned };

__global__ void faulty(Fault fault, float* out) {
  HARNESS_SHARED(float, values, 8);
  float* more = dynamic_shared();
  if (threadIdx.x == 0) more[0] = 0;
  if (fault == Fault::divergent_warp && threadIdx.x == 3) return;
  if (fault == Fault::divergent_block && threadIdx.x >= 32) return;
  if (fault == Fault::past_static && threadIdx.x == 0) values[8] = 1;
  if (fault == Fault::past_dynamic && threadIdx.x == 0) more[16] = 1;
  if (fault == Fault::misaligned && threadIdx.x == 0) store_as(out + 1, make_uint4(0, 0, 0, 0));
  __syncthreads();
  out[0] = warp_sum(1);
}

TEST(Emulation, FaultsAreErrors) {
  alignas(16) float out[8] = {};
  const auto run = [&](Fault fault) {
    return test::error_of([&] { launch("faulty", faulty, {3, 64, 64}, nullptr, fault, out); });
  };
  for (int round = 0; round < 2; ++round) {  // an error must not affect the next kernel
    EXPECT_EQ(run(Fault::none), "");
    EXPECT_EQ(out[0], 32);
    EXPECT_THAT(run(Fault::divergent_warp), HasSubstr("31 wait at __syncthreads"));
    EXPECT_THAT(run(Fault::divergent_block), HasSubstr("ended while others wait"));
#ifndef __SANITIZE_ADDRESS__  // AddressSanitizer would report these first
    EXPECT_THAT(run(Fault::past_static), HasSubstr("wrote past its shared memory"));
    EXPECT_THAT(run(Fault::past_dynamic), HasSubstr("wrote past its shared memory"));
#endif
    EXPECT_THAT(run(Fault::misaligned), HasSubstr("16 bytes at once"));
  }
  EXPECT_THROW(launch("faulty", faulty, {1, 48}, nullptr, Fault::none, out), Error);
  EXPECT_THROW(launch("faulty", faulty, {1, 64, 300 * 1024}, nullptr, Fault::none, out), Error);
}

// On a GPU such a kernel fails with cudaErrorInvalidAddressSpace, or writes elsewhere.
__global__ void stores_as_if_global(bool dynamic) {
  HARNESS_SHARED(float, values, 32);
  store_as<std::uint32_t>((dynamic ? dynamic_shared() : values) + threadIdx.x, 1);
}

TEST(Emulation, AStoreForGlobalMemoryFailsInSharedMemory) {
  for (const bool dynamic : {false, true}) {
    EXPECT_THAT(test::error_of([&] {
                  launch("stores", stores_as_if_global, {1, 32, 128}, nullptr, dynamic);
                }),
                HasSubstr("emulated kernel stores: an instruction for global memory at an address in shared memory"));
  }
}

}  // namespace
}  // namespace harness::cuda
