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

using Matmul = backend::Bound<program::Matmul>;
using program::DType;

// Operands have types but no memory.
Matmul matmul(std::int64_t m, std::int64_t n, std::int64_t k, DType in = DType::bf16, DType out = DType::bf16) {
  return {.a = {nullptr, in}, .b = {nullptr, in}, .out = {nullptr, out}, .m = m, .n = n, .k = k};
}

TEST(Product, EverythingThatChangesTheWorkChangesTheKey) {
  const auto key = [](const Matmul& op, bool tf32 = false) { return key_of(Product(op, tf32)); };
  const Matmul plain = matmul(64, 128, 256), of_f32 = matmul(64, 128, 256, DType::f32, DType::f32);
  std::set<std::string> keys{key(plain), key(of_f32), key(of_f32, true),
                             key(matmul(64, 128, 256, DType::bf16, DType::f32)), key(matmul(128, 64, 256))};
  alignas(512) std::byte somewhere[1024];
  const std::vector<std::function<void(Matmul&)>> changes{
      [](Matmul& op) { op.transpose_a = true; },
      [](Matmul& op) { op.transpose_b = true; },
      [](Matmul& op) { op.accumulate = true; },
      [&](Matmul& op) { op.bias_gradient.data = somewhere; },
      [&](Matmul& op) { op.bias.data = somewhere; },
      [&](Matmul& op) { op.add.data = somewhere; },
      [&](Matmul& op) { op.a.data = somewhere + 16; },
      [](Matmul& op) { op.epilogue = program::Epilogue::gelu; },
      [](Matmul& op) { op.epilogue = program::Epilogue::gelu_backward; }};
  for (const auto& change : changes) {
    Matmul op = plain;
    change(op);
    keys.insert(key(op));
  }
  EXPECT_EQ(keys.size(), 14u);
  // tf32 affects fp32 products only.
  EXPECT_EQ(key(plain, true), key(plain));
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
  EXPECT_EQ(alignment_of(0), 256);
  EXPECT_EQ(alignment_of(2), 2);
  EXPECT_EQ(alignment_of(48), 16);
  EXPECT_EQ(alignment_of(4096), 256);
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
  for (const Product& p : needed) keys.insert(key_of(p));
  EXPECT_EQ(keys.size(), needed.size());
  // Forward, input gradient and weight gradient of a layer's four products and of the head. Weight gradients overwrite
  // in the first micro-batch and accumulate in the second.
  EXPECT_GE(needed.size(), 15u);
  EXPECT_LE(needed.size(), 26u);
  for (const Product& p : needed) EXPECT_GE(p.alignment_bytes, 16) << key_of(p);
}

TEST(Device, EveryRankGetsItsOwn) {
  EXPECT_EQ(device_ordinal(8, 5, 8, false), 5);
  EXPECT_EQ(device_ordinal(1, 5, 8, false), 0);  // the launcher shows each task one device
  EXPECT_EQ(device_ordinal(1, 3, 4, true), 0);
  EXPECT_EQ(device_ordinal(2, 3, 4, true), 1);
  EXPECT_THROW(device_ordinal(4, 4, 8, false), Error);
}

}  // namespace
}  // namespace harness::cuda
