// The backend's launches of kernels, against the runtime's rules of shared memory.
#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/kernels/programmatic.h"

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
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(1);
    config.blockDim = dim3(32);
    config.dynamicSmemBytes = static_cast<std::size_t>(dynamic);
    config.stream = stream;
    return cudaLaunchKernelExC(&config, &kernel, nullptr);
  };
  EXPECT_EQ(launched(granted - declared), cudaSuccess);
  EXPECT_EQ(launched(granted), cudaErrorInvalidValue);
  EXPECT_TRUE(complained("without having asked"));
  EXPECT_EQ(cudaFuncSetAttribute(&kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, granted), cudaSuccess);
  EXPECT_EQ(launched(granted), cudaSuccess);
}

TEST_F(Launch, IsProgrammaticWhereThatIsAskedForAndOnlyThere) {
  declare_kernel(&kernel, 0);
  TestStream stream;
  const auto launch = [&] { cuda::launch_kernel("kernel", &kernel, {1, 32}, stream, nullptr); };
  launch();
  EXPECT_EQ(programmatic_launches(), 0);
  {
    const cuda::ProgrammaticLaunches on(true);
    launch();
    const cuda::ProgrammaticLaunches off(false);
    launch();
  }
  launch();
  EXPECT_EQ(programmatic_launches(), 1);
  EXPECT_EQ(complaints(), std::vector<std::string>{});
}

// A GPU of 9.0 runs code for 8.0 that was compiled for no GPU in particular; nothing in it waits.
TEST_F(Launch, IsNotProgrammaticForCodeThatDoesNotWait) {
  declare_kernel(&kernel, 0, 80);
  TestStream stream;
  const auto launch = [&] { cuda::launch_kernel("kernel", &kernel, {1, 32}, stream, nullptr); };
  launch();
  const cuda::ProgrammaticLaunches on(true);
  EXPECT_THAT(test::error_of(launch), HasSubstr("its code is for compute capability 8.0"));
  EXPECT_EQ(programmatic_launches(), 0);
}

TEST_F(Launch, TheStandInRefusesProgrammaticLaunchesBeforeHopper) {
  fake::Settings ampere;
  ampere.capability_major = 8;
  reset(ampere);
  declare_kernel(&kernel, 0);
  TestStream stream;
  const cuda::ProgrammaticLaunches on(true);
  EXPECT_THAT(test::error_of([&] {
                cuda::launch_kernel("kernel", &kernel, {1, 32}, stream, nullptr);
              }),
              HasSubstr("operation not supported"));
  EXPECT_TRUE(complained("on a device that has none"));
}

TEST_F(Launch, TheStandInRefusesOtherAttributesAndValues) {
  declare_kernel(&kernel, 0);
  TestStream stream;
  cudaLaunchAttribute attribute{};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  config.stream = stream;
  config.numAttrs = 1;
  EXPECT_EQ(cudaLaunchKernelExC(&config, &kernel, nullptr), cudaErrorInvalidValue);
  config.attrs = &attribute;
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 2;
  EXPECT_EQ(cudaLaunchKernelExC(&config, &kernel, nullptr), cudaErrorInvalidValue);
  attribute.id = cudaLaunchAttributeCooperative;
  EXPECT_EQ(cudaLaunchKernelExC(&config, &kernel, nullptr), cudaErrorInvalidValue);
  EXPECT_TRUE(complained("is not known here"));
}

TEST_F(Launch, TheStandInCapturesAProgrammaticLaunchBehindOneKernelOnly) {
  declare_kernel(&kernel, 0);
  TestStream stream, side;
  TestEvent fork, join;
  const auto launch = [&](bool programmatic) {
    const cuda::ProgrammaticLaunches mode(programmatic);
    return test::error_of([&] { cuda::launch_kernel("kernel", &kernel, {1, 32}, stream, nullptr); });
  };
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_THAT(launch(true), HasSubstr("invalid argument"));  // the first
  EXPECT_EQ(launch(false), "");
  EXPECT_EQ(launch(true), "");
  cudaEventRecord(fork, stream);
  cudaStreamWaitEvent(side, fork, 0);
  cuda::launch_kernel("kernel", &kernel, {1, 32}, side, nullptr);
  cudaEventRecord(join, side);
  EXPECT_EQ(launch(true), "");
  cudaStreamWaitEvent(stream, join, 0);
  EXPECT_THAT(launch(true), HasSubstr("invalid argument"));
  EXPECT_TRUE(complained("behind 2 nodes"));
  EXPECT_EQ(launch(false), "");
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

}  // namespace
}  // namespace harness::fake
