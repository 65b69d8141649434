// Copies between host and GPU over the stand-in for the CUDA runtime, at rates that the test sets.
#include "backend/cuda/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/runtime.h"
#include "fake.h"
#include "support/errors.h"

namespace harness::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double one_batch_s = 1e-3;  // of wall-clock time: enough for one batch each way

class HostCopiesOverFake : public ::testing::Test {
 protected:
  void TearDown() override { fake::reset(); }
};

// On two streams, both copies take as long as the slower one. One after the other, they would reach 1.33 GB/s.
TEST_F(HostCopiesOverFake, EachWayHasItsRateAndBothHaveTheirSum) {
  fake::reset({.copy_in_bytes_per_s = 2e9, .copy_out_bytes_per_s = 1e9});
  const machine::HostCopies rates = cuda_backend().measure_host_copies({}, one_batch_s);
  EXPECT_NEAR(rates.to_device_bytes_per_s, 2e9, 1e4);
  EXPECT_NEAR(rates.from_device_bytes_per_s, 1e9, 1e4);
  EXPECT_NEAR(rates.both_bytes_per_s, 2e9, 1e4);
  EXPECT_THAT(fake::complaints(), IsEmpty());
  EXPECT_THAT(fake::leaks(), IsEmpty());
}

TEST_F(HostCopiesOverFake, ADeviceWithoutRoomIsAnErrorAndKeepsNothing) {
  fake::reset({.device_bytes = std::size_t{100} << 20});  // room for one of two buffers
  EXPECT_THAT(test::error_of([] { measure_host_copies(one_batch_s); }),
              HasSubstr("out of GPU memory: 64 MiB for copies between host and GPU"));
  EXPECT_THAT(fake::leaks(), IsEmpty());
}

TEST_F(HostCopiesOverFake, AHostWithoutRoomIsNotTakenForTheDevice) {
  fake::reset({.pinned_bytes = std::size_t{1} << 20});
  const std::string error = test::error_of([] { measure_host_copies(one_batch_s); });
  EXPECT_THAT(error, HasSubstr("out of pinned host memory: 64 MiB for copies between host and GPU. Free memory on"));
  EXPECT_THAT(error, ::testing::Not(HasSubstr("micro_batch_size")));
  EXPECT_THAT(fake::leaks(), IsEmpty());
}

}  // namespace
}  // namespace harness::cuda
