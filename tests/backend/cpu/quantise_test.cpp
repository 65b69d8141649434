// Factors of products in 8-bit floats, beside those in the table of operations (operations_test.cpp).
#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/kernels.h"
#include "backend/quantised_blocks.h"
#include "rig.h"

namespace harness::test {
namespace {

// A matrix of 16 x 16 in e4m3, as its codes say, and its scale.
struct Factor {
  Values numbers;
  double scale = 0;
};
Factor quantised(const Values& values) {
  Rig rig;
  program::Quantise op;
  op.in = rig.f32(values);
  op.out = rig.output(256, program::DType::e4m3);
  op.scale = rig.output_f32(1);
  op.rows = op.width = 16;
  rig.run(op);
  return {rig.get(op.out), rig.get(op.scale)[0]};
}

TEST(Quantised, AnInfiniteElementMakesAllOfItNaN) {
  Values values(256, 1.0);
  values[77] = INFINITY;
  for (const double x : quantised(values).numbers) EXPECT_TRUE(std::isnan(x));
  EXPECT_EQ(quantised(Values(256, 0.0)).scale, 1);
}

TEST(QuantisedBlocks, AreThoseOfASearchThroughAllScalesAndCodes) {
  check_quantised_blocks([](const backend::Bound<program::Quantise>& op) { cpu::run(op); });
}

}  // namespace
}  // namespace harness::test
