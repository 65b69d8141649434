#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels/kernels.h"
#include "buffers.h"

namespace harness::test {
namespace {

class Losses : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, Losses, both_types(), type_name);

struct LossShape {
  std::int64_t rows, vocab;
};
constexpr LossShape loss_shapes[] = {{1, 8}, {3, 31}, {5, 1000}, {2, 50304}, {2, 8191}, {1500, 16}};

Buffer scalar(double value) {
  Buffer b(program::DType::f32, 1);
  b.set(0, value);
  return b;
}

backend::Bound<program::CrossEntropy> whole(LossShape s, const Buffer& logits, const Buffer& labels,
                                            const Buffer& loss) {
  return {logits, labels, loss, s.rows, s.vocab, 0.25, 1.5};
}

TEST_P(Losses, Whole) {
  for (const LossShape s : loss_shapes) {
    Buffer logits = random(type(), s.rows * s.vocab, 1, 4), wanted = logits;
    const Buffer labels = integers(s.rows, 2, 0, s.vocab);
    Buffer loss = scalar(2), wanted_loss = scalar(2);
    const Scratch row_losses(s.rows), cpu_row_losses(s.rows);
    cuda::run(nullptr, whole(s, logits, labels, loss), {.scratch = row_losses});
    cpu::run(whole(s, wanted, labels, wanted_loss), {.scratch = cpu_row_losses});
    EXPECT_TRUE(close(logits, wanted, limit())) << s.rows << " x " << s.vocab;
    EXPECT_TRUE(close(loss, wanted_loss, 1e-5)) << s.rows << " x " << s.vocab;
  }
}

TEST_P(Losses, FirstAndLastLabelAndHugeLogits) {
  const LossShape s{2, 4096};
  Buffer logits = random(type(), s.rows * s.vocab, 1, 30, 1000), wanted = logits;
  Buffer labels(program::DType::i32, 2), loss = scalar(0), wanted_loss = scalar(0);
  labels.set(0, 0);
  labels.set(1, static_cast<double>(s.vocab - 1));
  const Scratch row_losses(s.rows), cpu_row_losses(s.rows);
  cuda::run(nullptr, whole(s, logits, labels, loss), {.scratch = row_losses});
  cpu::run(whole(s, wanted, labels, wanted_loss), {.scratch = cpu_row_losses});
  EXPECT_TRUE(close(logits, wanted, limit()));
  EXPECT_TRUE(close(loss, wanted_loss, 1e-5));
}

TEST_P(Losses, LogitsOfMinusInfinityHaveNoProbability) {
  const LossShape s{2, 640};
  Buffer logits = random(type(), s.rows * s.vocab, 1);
  for (std::int64_t i = 0; i < s.vocab; i += 1 + i % 3) logits.set(i, -INFINITY);
  logits.set(7, 1);
  Buffer wanted = logits, labels(program::DType::i32, 2), loss = scalar(0), wanted_loss = scalar(0);
  labels.set(0, 7);
  labels.set(1, 9);
  const Scratch row_losses(s.rows), cpu_row_losses(s.rows);
  cuda::run(nullptr, whole(s, logits, labels, loss), {.scratch = row_losses});
  cpu::run(whole(s, wanted, labels, wanted_loss), {.scratch = cpu_row_losses});
  EXPECT_TRUE(close(logits, wanted, limit()));
  EXPECT_TRUE(close(loss, wanted_loss, 1e-5));
}

TEST_P(Losses, AnUnknownLabelOrANaNShows) {
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

TEST_P(Losses, InPartsOfAShard) {
  for (const LossShape s : loss_shapes) {
    for (const int coordinate : {0, 1}) {
      Buffer logits = random(type(), s.rows * s.vocab, 1, 4), wanted = logits;
      const Buffer labels = integers(s.rows, 2, 0, 2 * s.vocab);  // about half of them another rank's
      struct Parts {
        explicit Parts(std::int64_t rows)
            : maximum(program::DType::f32, rows), target(maximum), sum(maximum), loss(scalar(3)) {}
        Buffer maximum, target, sum, loss;
      } got(s.rows), want(s.rows);
      const Scratch row_losses(s.rows);
      cuda::run(nullptr, backend::Bound<program::CrossEntropyMaximum>{logits, got.maximum, s.rows, s.vocab});
      cpu::run(backend::Bound<program::CrossEntropyMaximum>{wanted, want.maximum, s.rows, s.vocab});
      EXPECT_TRUE(close(got.maximum, want.maximum, 0));
      // As after the all-reduces: the other ranks' share in the maximum and the sum.
      for (std::int64_t r = 0; r < s.rows; ++r) {
        got.maximum.set(r, got.maximum[r] + 0.5);
        want.maximum.set(r, want.maximum[r] + 0.5);
      }
      backend::KernelContext context{.scratch = row_losses};
      context.at[program::Axis::tensor] = coordinate;
      const program::Shard shard{program::Axis::tensor, s.vocab};
      const auto sums = [&](const Buffer& of, const Parts& to) {
        return backend::Bound<program::CrossEntropySums>{of,     labels, to.maximum, to.target,
                                                         to.sum, s.rows, s.vocab,    shard};
      };
      cuda::run(nullptr, sums(logits, got), context);
      cpu::run(sums(wanted, want), context);
      EXPECT_TRUE(close(got.target, want.target, 1e-6));
      EXPECT_TRUE(close(got.sum, want.sum, 1e-5));
      for (std::int64_t r = 0; r < s.rows; ++r) {
        got.sum.set(r, got.sum[r] + 1);
        want.sum.set(r, want.sum[r] + 1);
      }
      const auto gradient = [&](const Buffer& of, const Parts& to) {
        return backend::Bound<program::CrossEntropyGradient>{of,     labels,  to.maximum, to.target, to.sum, to.loss,
                                                             s.rows, s.vocab, shard,      0.25,      1.5};
      };
      cuda::run(nullptr, gradient(logits, got), context);
      cpu::run(gradient(wanted, want), context);
      EXPECT_TRUE(close(logits, wanted, limit())) << s.rows << " x " << s.vocab << ", shard " << coordinate;
      EXPECT_TRUE(close(got.loss, want.loss, 1e-5)) << s.rows << " x " << s.vocab << ", shard " << coordinate;
    }
  }
}

}  // namespace
}  // namespace harness::test
