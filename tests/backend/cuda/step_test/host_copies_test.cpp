// Copies between host and GPU over the stand-in for the CUDA runtime, whose copies take as long as the test says.
#include "backend/cuda/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/runtime.h"
#include "fake.h"

namespace harness::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double one_batch_s = 1e-3;  // of the wall clock: each way is measured once

class HostCopiesOverFake : public ::testing::Test {
 protected:
  void TearDown() override { fake::reset(); }
  static void use(double in_bytes_per_s, double out_bytes_per_s) {
    fake::Settings settings;
    settings.copy_in_bytes_per_s = in_bytes_per_s;
    settings.copy_out_bytes_per_s = out_bytes_per_s;
    fake::reset(settings);
  }
};

// Both at once take as long as the slower one, on two streams: one after the other, both would reach 1.33 GB/s.
TEST_F(HostCopiesOverFake, EachWayHasItsRateAndBothHaveTheirSum) {
  use(2e9, 1e9);
  const machine::HostCopies rates = cuda_backend().measure_host_copies({}, one_batch_s);
  EXPECT_NEAR(rates.to_device_bytes_per_s, 2e9, 1e4);
  EXPECT_NEAR(rates.from_device_bytes_per_s, 1e9, 1e4);
  EXPECT_NEAR(rates.both_bytes_per_s, 2e9, 1e4);
  EXPECT_THAT(fake::complaints(), IsEmpty());
  EXPECT_THAT(fake::leaks(), IsEmpty());
}

TEST_F(HostCopiesOverFake, ADeviceWithoutRoomIsAnErrorAndKeepsNothing) {
  fake::Settings settings;
  settings.device_bytes = std::size_t{100} << 20;  // for one of two buffers
  fake::reset(settings);
  try {
    measure_host_copies(one_batch_s);
    FAIL() << "nothing was said";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("out of GPU memory: 64 MiB for copies between host and GPU"));
  }
  EXPECT_THAT(fake::leaks(), IsEmpty());
}

}  // namespace
}  // namespace harness::cuda
