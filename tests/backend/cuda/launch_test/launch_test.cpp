// The backend's launches of kernels, against the runtime's rules of shared memory.
#include "backend/cuda/kernels/launch.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include "fake.h"
#include "support/errors.h"

namespace harness::cuda {
namespace {

constexpr std::int64_t declared = 512, granted = 48 << 10, at_most = 232448;
constexpr char kernel = 0;  // its address names one

std::string refused(std::int64_t dynamic) {
  fake::reset();
  fake::declare_kernel(&kernel, declared);
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0), cudaSuccess);
  return test::error_of([&] { launch_kernel("kernel", &kernel, {1, 32, dynamic}, stream, nullptr); });
}

TEST(Launch, AsksForSharedMemoryWhereDeclaredAndDynamicExceedWhatIsGranted) {
  for (const std::int64_t dynamic : {std::int64_t{0}, std::int64_t{4}, granted - declared, granted - declared + 4,
                                     granted, granted + 4, at_most - declared}) {
    EXPECT_EQ(refused(dynamic), "") << dynamic;
    EXPECT_EQ(fake::complaints(), std::vector<std::string>{}) << dynamic;
  }
  EXPECT_THAT(refused(at_most), ::testing::HasSubstr("kernel kernel could not be started"));
}

}  // namespace
}  // namespace harness::cuda
