// precision: mxfp8 over the stand-in for cuBLASLt: products with block scales.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/tuner.h"
#include "backends/backends.h"
#include "fake.h"
#include "selftest/checks.h"
#include "selftest/operation_cases.h"
#include "workloads/workload.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace harness::cuda {
namespace {

using ::testing::HasSubstr;

class BlockScales : public ::testing::Test {
 protected:
  void SetUp() override { fake::reset({.compute_major = 10}); }
  void TearDown() override { fake::reset(); }
};

std::vector<selftest::OperationCase> products() {
  selftest::Cases cases;
  for (const auto precision : {config::Precision::fp8, config::Precision::mxfp8})
    selftest::add_fp8_product_cases(cases, precision);
  return cases;
}

TEST_F(BlockScales, ProductsAreThoseOfTheCpuBackend) {
  const auto lines = selftest::check_operations(products(), cuda_backend(), backends::get(config::BackendKind::cpu),
                                                {.only = {}, .large = false});
  ASSERT_EQ(lines.size(), 2u);
  for (const selftest::CheckLine& line : lines) {
    EXPECT_EQ(line.outcome, selftest::Outcome::passed)
        << line.check << (line.failures.empty() ? "" : ": " + line.failures.front());
    EXPECT_GE(line.cases, 15) << line.check;
  }
  EXPECT_EQ(fake::complaints(), std::vector<std::string>{});
}

TEST_F(BlockScales, AGpuBelowBlackwellIsRefusedInALine) {
#ifdef __SANITIZE_ADDRESS__
  const __lsan::ScopedDisabler executables_that_failed_are_leaked_on_purpose;  // see backend/cuda/runtime.h
#endif
  fake::reset({.compute_major = 9});
  const auto lines = selftest::check_operations(products(), cuda_backend(), backends::get(config::BackendKind::cpu),
                                                {.only = {}, .large = false});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines.front().outcome, selftest::Outcome::passed);
  EXPECT_EQ(lines.back().outcome, selftest::Outcome::failed);
  ASSERT_FALSE(lines.back().failures.empty());
  EXPECT_THAT(lines.back().failures.front(),
              HasSubstr("precision mxfp8 needs tensor cores of compute capability 10.0 (Blackwell) or later; this GPU "
                        "has 9.0: take precision fp8 or bf16 here"));
}

TEST_F(BlockScales, TunedProductsAreThoseThatRun) {
  config::Settings settings;
  settings.precision = config::Precision::mxfp8;
  settings.attention = config::AttentionKind::unfused;
  settings.global_batch_size = 4;
  settings.micro_batch_size = 2;
  const config::Model of_whole_blocks{"tiny", 2, 64, 4, 128, 32};
  const program::ProgramSet set =
      program::lower(workloads::build_programs(of_whole_blocks, settings, {}), cuda_backend().declared());
  const backend::Tuning tuning =
      tune_products(set.roles.front(), false, {}, 0, {.warm_up_s = 0, .limit_s = 0, .rounds = 1});
  EXPECT_EQ(std::ranges::count_if(tuning, [](const auto& t) { return t.first.ends_with(" block_scales"); }), 16)
      << "of four layers forward, their input gradients, and weight gradients of a first and of another micro-batch";
  backend::ExecutableRequest request;
  request.program = &set.roles.front();
  request.groups = set.groups;
  request.settings = settings;
  request.tuning = std::make_shared<const backend::Tuning>(tuning);
  const auto executable = cuda_backend().create(request);
  executable->connect({}, 10);
  executable->initialize();
  for (const std::string& warning : executable->warnings()) EXPECT_THAT(warning, Not(HasSubstr("not tuned")));
  EXPECT_EQ(fake::complaints(), std::vector<std::string>{});
}

}  // namespace
}  // namespace harness::cuda
