#include "backend/cuda/blas.h"

#include <cublasLt.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "fake.h"

namespace harness::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t n = 64;

Product product_with(program::Epilogue epilogue, bool bias) {
  program::Matmul op;
  op.m = op.n = op.k = n;
  op.epilogue = epilogue;
  if (bias) op.bias = {0, 0, n};
  return product_of(op, program::DType::f32, program::DType::f32, program::DType::f32, false, 256);
}

class BlasOverFake : public ::testing::Test {
 protected:
  void answer(cublasStatus_t status) {
    fake::Settings settings;
    settings.lt_epilogue_status = status;
    fake::reset(settings);
  }
  // Takes memory of the device that is set up by then.
  struct Bench {
    Memory memory{Memory::Kind::device, 6 * n* n * 4, "a test"};
    Blas blas;
    backend::Tensor matrix(int i) const { return {memory.data() + i * n * n * 4, program::DType::f32, n * n}; }
    Operands operands() const {
      const backend::Tensor vector{memory.data() + 5 * n * n * 4, program::DType::f32, n};
      return {matrix(0), matrix(1), vector, matrix(2), matrix(3), {}, nullptr};
    }
  };
  void TearDown() override { fake::reset(); }
};

TEST_F(BlasOverFake, AnEpilogueThatIsCalledInvalidRunsAsSeparateKernels) {
  answer(CUBLAS_STATUS_INVALID_VALUE);
  Bench bench;
  const Product gelu = product_with(program::Epilogue::gelu, true);
  const ProductChoice choice = bench.blas.default_choice(gelu, bench.operands());
  EXPECT_FALSE(choice.fused);
  ASSERT_THAT(bench.blas.refusals(), SizeIs(1));
  EXPECT_THAT(bench.blas.refusals().front(), HasSubstr("CUBLAS_STATUS_INVALID_VALUE"));
  EXPECT_THAT(bench.blas.refusals().front(), HasSubstr("gelu"));
  const OwnedStream stream(Priority::normal);
  bench.blas.prepare(gelu, bench.operands(), choice)(stream.get());
  synchronize(stream.get());
  for (const ProductChoice& c : bench.blas.candidates(gelu, bench.operands(), 8)) EXPECT_FALSE(c.fused);
  EXPECT_EQ(fake::complaints(), std::vector<std::string>{});
}

TEST_F(BlasOverFake, AFusedFormThatIsThereIsTakenWithoutAWord) {
  answer(CUBLAS_STATUS_SUCCESS);
  Bench bench;
  EXPECT_TRUE(bench.blas.default_choice(product_with(program::Epilogue::gelu, true), bench.operands()).fused);
  EXPECT_THAT(bench.blas.refusals(), IsEmpty());
}

TEST_F(BlasOverFake, AFailedExecutionIsAnError) {
  answer(CUBLAS_STATUS_EXECUTION_FAILED);
  Bench bench;
  EXPECT_THROW(bench.blas.default_choice(product_with(program::Epilogue::gelu, true), bench.operands()), Error);
}

}  // namespace
}  // namespace harness::cuda
