#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels.h"
#include "buffers.h"

namespace harness::test {
namespace {

class Optimizer : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, Optimizer, both_types(), type_name);

TEST_P(Optimizer, SeveralSteps) {
  // The last: more than all blocks take in one go.
  for (const std::int64_t n : {1, 3, 4, 1023, 60001}) {
    for (const bool with_weights : {false, true}) {
      struct State {
        State(DType type, std::int64_t count)
            : master(random(DType::f32, count, 1)),
              moment1(random(DType::f32, count, 2, 0.1)),
              moment2(random(DType::f32, count, 3, 0.001, 0.01)),
              weights(type, count) {}
        Buffer master, moment1, moment2, weights;
      } got(type(), n), wanted(type(), n);
      Buffer counter(DType::i32, 1), rate(DType::f32, 1);
      AdamW op;
      op.weight_decay = 0.2;
      for (const int done : {0, 1, 1000}) {
        counter.set(0, done), rate.set(0, 0.01 / (1 + done));
        const Buffer gradient = random(DType::f32, n, static_cast<std::uint64_t>(10 + done));
        cuda::adamw(nullptr, op, got.master, got.moment1, got.moment2, gradient,
                    with_weights ? got.weights.tensor() : Tensor{}, counter, rate);
        cpu::adamw(wanted.master, wanted.moment1, wanted.moment2, gradient,
                   with_weights ? wanted.weights.tensor() : Tensor{}, done + 1, rate[0], op);
        EXPECT_TRUE(close(got.master, wanted.master, 1e-6)) << n << " after " << done;
        EXPECT_TRUE(close(got.moment1, wanted.moment1, 1e-6)) << n << " after " << done;
        EXPECT_TRUE(close(got.moment2, wanted.moment2, 1e-6)) << n << " after " << done;
        if (with_weights) {
          EXPECT_TRUE(close(got.weights, wanted.weights, limit())) << n << " after " << done;
        }
        EXPECT_EQ(counter[0], done);
      }
      if (!with_weights) {
        EXPECT_TRUE(std::isnan(got.weights[0]));
      }
    }
  }
}

class Random : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, Random, both_types(), type_name);

TEST_P(Random, InitializeAsOnTheCpu) {
  struct Case {
    std::int64_t outer, full, part, inner;
    int coordinate;
  };
  for (const Case& c : {Case{1, 1, 1, 20000, 0}, Case{3, 12, 4, 7, 2}, Case{5, 6, 6, 10, 3}, Case{1, 100, 50, 33, 1}}) {
    Initialize op;
    op.first_index = (std::int64_t{1} << 33) + 5;
    op.outer = c.outer, op.full = c.full, op.part = c.part, op.inner = c.inner;
    for (const double deviation : {0.02, 0.0}) {
      op.mean = 0.125, op.deviation = deviation;
      Buffer out(type(), c.outer * c.part * c.inner), wanted = out;
      cuda::initialize(nullptr, op, out, c.coordinate, 42);
      cpu::initialize(op, wanted, c.coordinate, 42);
      // Equal but where a last bit's difference in double precision crosses a rounding limit.
      EXPECT_TRUE(close(out, wanted, type() == DType::f32 ? 1.2e-7 : 4e-3));
    }
  }
}

TEST_P(Random, FillRandom) {
  for (const std::int64_t n : {std::int64_t{3}, std::int64_t{30001}}) {
    Buffer out(type(), n);
    const Buffer wanted = random(type(), n, 77);
    cuda::fill_random(nullptr, out, 77);
    for (std::int64_t i = 0; i < n; ++i) {
      ASSERT_NEAR(out[i], wanted[i], type() == DType::f32 ? 1e-3 : 3e-2) << i;
    }
  }
}

}  // namespace
}  // namespace harness::test
