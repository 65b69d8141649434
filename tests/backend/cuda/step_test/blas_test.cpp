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

class BlasOverFake : public ::testing::Test {
 protected:
  void answer(cublasStatus_t status) { fake::reset({.lt_epilogue_status = static_cast<int>(status)}); }
  // Allocates on the fake device: construct it after answer() or reset().
  struct Bench {
    Memory memory{Memory::Kind::device, 6 * n* n * 4, "a test"};
    Blas blas;
    backend::Tensor matrix(int i) const { return {memory.data() + i * n * n * 4, program::DType::f32, n * n}; }
    backend::Tensor vector() const { return {memory.data() + 5 * n * n * 4, program::DType::f32, n}; }
    backend::Bound<program::Matmul> plain() const {
      return {.a = matrix(0), .b = matrix(1), .bias = vector(), .out = matrix(3), .m = n, .n = n, .k = n};
    }
    Product gelu() const {
      auto op = plain();
      op.aux = matrix(2);
      op.epilogue = program::Epilogue::gelu;
      return {op, false};
    }
  };
  void TearDown() override { fake::reset(); }
};

TEST_F(BlasOverFake, AnEpilogueThatIsCalledInvalidRunsAsSeparateKernels) {
  answer(CUBLAS_STATUS_INVALID_VALUE);
  Bench bench;
  const Product gelu = bench.gelu();
  const ProductChoice choice = bench.blas.default_choice(gelu);
  EXPECT_FALSE(choice.fused);
  ASSERT_THAT(bench.blas.refusals(), SizeIs(1));
  EXPECT_THAT(bench.blas.refusals().front(), HasSubstr("CUBLAS_STATUS_INVALID_VALUE"));
  EXPECT_THAT(bench.blas.refusals().front(), HasSubstr("gelu"));
  const OwnedStream stream(Priority::normal);
  bench.blas.prepare(gelu, choice)(stream.get());
  synchronize(stream.get());
  for (const ProductChoice& c : bench.blas.candidates(gelu, 8)) EXPECT_FALSE(c.fused);
  EXPECT_EQ(fake::complaints(), std::vector<std::string>{});
}

TEST_F(BlasOverFake, AFusedFormThatIsThereIsTakenWithoutAWord) {
  answer(CUBLAS_STATUS_SUCCESS);
  Bench bench;
  EXPECT_TRUE(bench.blas.default_choice(bench.gelu()).fused);
  EXPECT_THAT(bench.blas.refusals(), IsEmpty());
}

// out = a b + bias + add, with `add` unchanged, for every choice. The in-place proposal is not among them.
TEST_F(BlasOverFake, WhatIsAddedIsReadFromItsOwnPlace) {
  fake::reset({.lt_first_is_in_place = true});
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
  auto at = bench.plain();
  at.add = bench.matrix(2);
  put(at.a, [](auto i, auto j) { return i == j ? 3 : 0; });
  put(at.b, [](auto i, auto j) { return i - j; });
  put(at.bias, [](auto, auto j) { return 0.5 * static_cast<double>(j); });
  put(at.add, [](auto i, auto j) { return i * j; });
  const std::vector<float> added = get(at.add);
  const std::vector<ProductChoice> choices = bench.blas.candidates({at, false}, 8);
  EXPECT_EQ(choices.size(), 2u);
  for (const ProductChoice& choice : choices) {
    put(at.out, [](auto, auto) { return 7; });
    bench.blas.prepare({at, false}, choice)(stream.get());
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
  EXPECT_THROW(bench.blas.default_choice(bench.gelu()), Error);
}

}  // namespace
}  // namespace harness::cuda
