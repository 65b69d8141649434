// The backend's launches of kernels, against the runtime's rules of shared memory.
#include "backend/cuda/kernels/launch.h"

#include <gmock/gmock.h>

#include "device.h"
#include "support/errors.h"

namespace harness::fake {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t declared = 512, granted = 48 << 10, at_most = 232448;
constexpr char kernel = 0;  // its address names one

class Launch : public Device {
 protected:
  std::string refused(std::int64_t dynamic) {
    reset();
    declare_kernel(&kernel, declared);
    TestStream stream;
    return test::error_of([&] { cuda::launch_kernel("kernel", &kernel, {1, 32, dynamic}, stream, nullptr); });
  }
};

TEST_F(Launch, AsksForSharedMemoryWhereDeclaredAndDynamicExceedWhatIsGranted) {
  for (const std::int64_t dynamic : {std::int64_t{0}, std::int64_t{4}, granted - declared, granted - declared + 4,
                                     granted, granted + 4, at_most - declared}) {
    EXPECT_EQ(refused(dynamic), "") << dynamic;
    EXPECT_EQ(complaints(), std::vector<std::string>{}) << dynamic;
  }
  EXPECT_THAT(refused(at_most), HasSubstr("kernel kernel could not be started"));
}

TEST_F(Launch, TheStandInRefusesALaunchThatDidNotAsk) {
  declare_kernel(&kernel, declared);
  TestStream stream;
  const auto launched = [&](std::int64_t dynamic) {
    return cudaLaunchKernel(&kernel, dim3(1), dim3(32), nullptr, static_cast<std::size_t>(dynamic), stream);
  };
  EXPECT_EQ(launched(granted - declared), cudaSuccess);
  EXPECT_EQ(launched(granted), cudaErrorInvalidValue);
  EXPECT_TRUE(complained("without having asked"));
  EXPECT_EQ(cudaFuncSetAttribute(&kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, granted), cudaSuccess);
  EXPECT_EQ(launched(granted), cudaSuccess);
}

}  // namespace
}  // namespace harness::fake
