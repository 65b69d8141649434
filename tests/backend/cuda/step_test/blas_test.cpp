#include "backend/cuda/blas.h"

#include <cublasLt.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
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
  void answer(cublasStatus_t status) { fake::reset({.lt_epilogue_status = static_cast<int>(status)}); }
  // Takes memory of the device that is set up by then.
  struct Bench {
    Memory memory{Memory::Kind::device, 6 * n* n * 4, "a test"};
    Blas blas;
    backend::Tensor matrix(int i) const { return {memory.data() + i * n * n * 4, program::DType::f32, n * n}; }
    Operands operands() const {
      const backend::Tensor vector{memory.data() + 5 * n * n * 4, program::DType::f32, n};
      return {.a = matrix(0), .b = matrix(1), .bias = vector, .aux = matrix(2), .out = matrix(3)};
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

// out = a b + bias + add, with `add` left as it was, in whichever form is chosen. One proposal cannot do it.
TEST_F(BlasOverFake, WhatIsAddedIsReadFromItsOwnPlace) {
  fake::reset({.lt_first_is_in_place = true});
  program::Matmul op;
  op.m = op.n = op.k = n;
  op.bias = {0, 0, n};
  op.add = {0, 0, n * n};
  const Product product = product_of(op, program::DType::f32, program::DType::f32, program::DType::f32, false, 256);
  Bench bench;
  const OwnedStream stream(Priority::normal);
  const auto put = [&](const backend::Tensor& to, const auto& value_of) {
    std::vector<float> values(to.count);
    for (std::int64_t i = 0; i < to.count; ++i) values[i] = static_cast<float>(value_of(i / n, i % n));
    copy_in(stream.get(), to.data, values.data(), to.bytes());
    synchronize(stream.get());
  };
  const auto get = [&](const backend::Tensor& from) {
    std::vector<float> values(from.count);
    copy_out(stream.get(), values.data(), from.data, from.bytes());
    synchronize(stream.get());
    return values;
  };
  Operands at = bench.operands();
  at.add = at.aux;
  at.aux = {};
  put(at.a, [](auto i, auto j) { return i == j ? 3 : 0; });
  put(at.b, [](auto i, auto j) { return i - j; });
  put(at.bias, [](auto, auto j) { return 0.5 * static_cast<double>(j); });
  put(at.add, [](auto i, auto j) { return i * j; });
  const std::vector<float> added = get(at.add);
  const std::vector<ProductChoice> choices = bench.blas.candidates(product, at, 8);
  EXPECT_EQ(choices.size(), 2u);
  for (const ProductChoice& choice : choices) {
    put(at.out, [](auto, auto) { return 7; });
    bench.blas.prepare(product, at, choice)(stream.get());
    const std::vector<float> out = get(at.out);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        ASSERT_FLOAT_EQ(out[i * n + j], static_cast<float>(3 * (i - j) + i * j) + 0.5F * static_cast<float>(j));
      }
    }
    EXPECT_EQ(get(at.add), added);
  }
  EXPECT_EQ(fake::complaints(), std::vector<std::string>{});
}

TEST_F(BlasOverFake, AFailedExecutionIsAnError) {
  answer(CUBLAS_STATUS_EXECUTION_FAILED);
  Bench bench;
  EXPECT_THROW(bench.blas.default_choice(product_with(program::Epilogue::gelu, true), bench.operands()), Error);
}

}  // namespace
}  // namespace harness::cuda
