// Values and uses of kernels that are missing in the table of operations (table_test.cpp).
#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels/kernels.h"
#include "backend/quantised_blocks.h"
#include "buffers.h"

namespace harness::test {
namespace {

class Special : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, Special, both_types(), type_name);

TEST_P(Special, GeluFarFromZero) {
  Buffer in(type(), 8), out(type(), 8);
  const double x[] = {-1e4, -30, -6, 0, 6, 30, 1e4, -0.0}, wanted[] = {0, 0, 0, 0, 6, 30, 9984, 0};
  for (int i = 0; i < 8; ++i) in.set(i, x[i]);
  cuda::run(nullptr, backend::Bound<program::Gelu>{in, out});
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(out[i], wanted[i], 16) << x[i];
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(out[i], wanted[i], 1e-6) << x[i];
}

TEST_P(Special, NormOfLargeNumbersThatDifferLittle) {
  const std::int64_t rows = 3, width = 512;
  const Buffer in = random(program::DType::f32, rows * width, 1, 0.5, 300),
               gamma = random(program::DType::f32, width, 2), beta = random(program::DType::f32, width, 3);
  Buffer out(program::DType::f32, rows * width), mean(program::DType::f32, rows), rstd(mean), wanted(out),
      wanted_mean(mean), wanted_rstd(mean);
  cuda::run(nullptr, backend::Bound<program::LayerNorm>{in, {}, {}, gamma, beta, {}, out, mean, rstd, rows, width});
  cpu::run(
      backend::Bound<program::LayerNorm>{in, {}, {}, gamma, beta, {}, wanted, wanted_mean, wanted_rstd, rows, width});
  EXPECT_TRUE(close(rstd, wanted_rstd, 1e-5));
  EXPECT_TRUE(close(out, wanted, 1e-3));
}

Buffer scalar(double value) {
  Buffer b(program::DType::f32, 1);
  b.set(0, value);
  return b;
}

struct LossShape {
  std::int64_t rows, vocab;
};
backend::Bound<program::CrossEntropy> whole(LossShape s, const Buffer& logits, const Buffer& labels,
                                            const Buffer& loss) {
  return {logits, labels, loss, s.rows, s.vocab, 0.25, 1.5};
}

// Expects the cpu backend's gradients and loss for two rows with these labels.
void expect_loss_of_cpu(const Buffer& logits, double first_label, double second_label, double limit) {
  const LossShape s{2, logits.tensor().count / 2};
  const Buffer ours = logits, theirs = logits, loss = scalar(0), wanted_loss = scalar(0);
  Buffer labels(program::DType::i32, 2);
  labels.set(0, first_label);
  labels.set(1, second_label);
  const Scratch row_losses(s.rows), cpu_row_losses(s.rows);
  cuda::run(nullptr, whole(s, ours, labels, loss), {.scratch = row_losses});
  cpu::run(whole(s, theirs, labels, wanted_loss), {.scratch = cpu_row_losses});
  EXPECT_TRUE(close(ours, theirs, limit));
  EXPECT_TRUE(close(loss, wanted_loss, 1e-5));
}

TEST_P(Special, FirstAndLastLabelAndHugeLogits) {
  expect_loss_of_cpu(random(type(), 2 * 4096, 1, 30, 1000), 0, 4095, tolerance(type()));
}

TEST_P(Special, LogitsOfMinusInfinityHaveNoProbability) {
  constexpr std::int64_t vocab = 640;
  Buffer logits = random(type(), 2 * vocab, 1);
  for (std::int64_t i = 0; i < vocab; i += 1 + i % 3) logits.set(i, -INFINITY);
  logits.set(7, 1);
  expect_loss_of_cpu(logits, 7, 9, tolerance(type()));
}

TEST_P(Special, AnUnknownLabelOrANaNShows) {
  for (const double label : {-1.0, 64.0, 5.0}) {
    const LossShape s{1, 64};
    Buffer logits = random(type(), s.vocab, 1), labels(program::DType::i32, 1), loss = scalar(0);
    if (label == 5) logits.set(17, NAN);
    labels.set(0, label);
    const Scratch row_losses(1);
    cuda::run(nullptr, whole(s, logits, labels, loss), {.scratch = row_losses});
    EXPECT_TRUE(std::isnan(loss[0])) << label;
    EXPECT_EQ(std::isnan(logits[3]), label == 5);
  }
}

TEST(Integers, FillAndCopy) {
  Buffer out(program::DType::i32, 1001), copy(program::DType::i32, 1001);
  cuda::run(nullptr, backend::Bound<program::Fill>{out, -70001});
  cuda::run(nullptr, backend::Bound<program::Convert>{out, copy});
  for (std::int64_t i = 0; i < 1001; ++i) ASSERT_EQ(copy[i], -70001);
}

TEST(QuantisedBlocks, AreThoseOfASearchThroughAllScalesAndCodes) {
  check_quantised_blocks([](const backend::Bound<program::Quantise>& op) { cuda::run(nullptr, op, {}); });
}

}  // namespace
}  // namespace harness::test
