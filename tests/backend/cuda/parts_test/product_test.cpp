#include "backend/cuda/blas.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

#include "backend/cuda/tuner.h"
#include "base/text.h"
#include "workloads/workload.h"

namespace harness::cuda {
namespace {

program::Matmul matmul(std::int64_t m, std::int64_t n, std::int64_t k) {
  program::Matmul op;
  op.m = m;
  op.n = n;
  op.k = k;
  return op;
}

TEST(Product, EverythingThatChangesTheWorkChangesTheKey) {
  using program::DType;
  const auto key = [](const program::Matmul& op, DType a = DType::bf16, DType out = DType::bf16, bool tf32 = false,
                      int aligned = 256) { return key_of(product_of(op, a, a, out, tf32, aligned)); };
  const program::Matmul plain = matmul(64, 128, 256);
  std::set<std::string> keys{key(plain),
                             key(plain, DType::f32, DType::f32),
                             key(plain, DType::f32, DType::f32, true),
                             key(plain, DType::bf16, DType::f32),
                             key(plain, DType::bf16, DType::bf16, false, 16),
                             key(matmul(128, 64, 256))};
  const std::vector<std::function<void(program::Matmul&)>> changes{
      [](program::Matmul& op) { op.transpose_a = true; },
      [](program::Matmul& op) { op.transpose_b = true; },
      [](program::Matmul& op) { op.accumulate = true; },
      [](program::Matmul& op) {
        op.bias_gradient = {0, 0, 64};
      },
      [](program::Matmul& op) {
        op.bias = {0, 0, 128};
      },
      [](program::Matmul& op) {
        op.add = {0, 0, 64 * 128};
      },
      [](program::Matmul& op) { op.epilogue = program::Epilogue::gelu; },
      [](program::Matmul& op) { op.epilogue = program::Epilogue::gelu_backward; }};
  for (const auto& change : changes) {
    program::Matmul op = plain;
    change(op);
    keys.insert(key(op));
  }
  EXPECT_EQ(keys.size(), 14u);
  // tf32 is about fp32 products alone.
  EXPECT_EQ(key(plain, DType::bf16, DType::bf16, true), key(plain));
}

TEST(Product, ChoicesSurviveAFile) {
  std::string algorithm;
  for (int i = 0; i < 64; ++i) algorithm += static_cast<char>(i * 5 + 3);
  for (const ProductChoice& c : {ProductChoice{true, algorithm, 1.25e-4}, ProductChoice{false, algorithm, 0},
                                 ProductChoice{true, "", 2e-3}, ProductChoice{false, algorithm, 1e-3, 2}}) {
    EXPECT_EQ(parse_choice(print_choice(c)), c);
  }
  const std::string good = print_choice({true, algorithm, 1e-3});
  for (const std::string& bad : {std::string(), std::string("fused"), std::string("fast ") + good.substr(6),
                                 good.substr(0, 20), good + "x", good + " x", std::string("fused 0g 1")}) {
    EXPECT_THROW(parse_choice(bad), Error) << bad;
  }
}

TEST(Product, AlignmentIsTheLargestPowerOfTwoUpTo256) {
  EXPECT_EQ(alignment_of(std::int64_t{0}), 256);
  EXPECT_EQ(alignment_of(std::int64_t{2}), 2);
  EXPECT_EQ(alignment_of(std::int64_t{48}), 16);
  EXPECT_EQ(alignment_of(std::int64_t{4096}), 256);
}

TEST(Product, AStepNeedsFewDistinctOnes) {
  const config::Model model{"test", 24, 2048, 16, 50304, 2048};
  config::Settings settings;
  settings.precision = config::Precision::bf16;
  settings.global_batch_size = 4;
  settings.micro_batch_size = 2;
  const program::Program program =
      program::lower(workloads::build_programs(model, settings, program::Layout{}).roles.front(),
                     config::traits_of(config::BackendKind::cuda).fused);
  const auto needed = needed_products(program, false);
  std::set<std::string> keys;
  for (const NeededProduct& n : needed) keys.insert(key_of(n.product));
  EXPECT_EQ(keys.size(), needed.size());
  // Forward, input gradient and weight gradient of four layers and the head; weight gradients of the first micro-batch
  // replace, of the second add.
  EXPECT_GE(needed.size(), 15u);
  EXPECT_LE(needed.size(), 26u);
  for (const NeededProduct& n : needed) EXPECT_GE(n.product.alignment_bytes, 16) << key_of(n.product);
}

TEST(Device, EveryRankGetsItsOwn) {
  EXPECT_EQ(device_ordinal(8, 5, 8, false), 5);
  EXPECT_EQ(device_ordinal(1, 5, 8, false), 0);  // the launcher shows each task one
  EXPECT_EQ(device_ordinal(1, 3, 4, true), 0);
  EXPECT_EQ(device_ordinal(2, 3, 4, true), 1);
  EXPECT_THROW(device_ordinal(4, 4, 8, false), Error);
}

}  // namespace
}  // namespace harness::cuda
