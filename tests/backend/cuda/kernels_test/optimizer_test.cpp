#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels/kernels.h"
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
        State(program::DType type, std::int64_t count)
            : master(random(program::DType::f32, count, 1)),
              moment1(random(program::DType::f32, count, 2, 0.1)),
              moment2(random(program::DType::f32, count, 3, 0.001, 0.01)),
              weights(type, count) {}
        Buffer master, moment1, moment2, weights;
      } got(type(), n), wanted(type(), n);
      Buffer counter(program::DType::i32, 1), rate(program::DType::f32, 1);
      const auto update = [&](const Buffer& gradient, const State& state) {
        return backend::Bound<program::AdamW>{.master = state.master,
                                              .moment1 = state.moment1,
                                              .moment2 = state.moment2,
                                              .gradient = gradient,
                                              .weights = with_weights ? state.weights.tensor() : backend::Tensor{},
                                              .counter = counter,
                                              .learning_rate = rate,
                                              .weight_decay = 0.2};
      };
      for (const int done : {0, 1, 1000}) {
        counter.set(0, done);
        rate.set(0, 0.01 / (1 + done));
        const Buffer gradient = random(program::DType::f32, n, static_cast<std::uint64_t>(10 + done));
        cuda::run(nullptr, update(gradient, got));
        cpu::run(update(gradient, wanted));
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
    backend::KernelContext context{.seed = 42};
    context.at[program::Axis::tensor] = c.coordinate;
    for (const double deviation : {0.02, 0.0}) {
      Buffer out(type(), c.outer * c.part * c.inner), wanted = out;
      const auto to = [&](const Buffer& result) {
        return backend::Bound<program::Initialize>{
            result,   (std::int64_t{1} << 33) + 5, program::Axis::tensor, c.outer, c.full, c.part, c.inner, 0.125,
            deviation};
      };
      cuda::run(nullptr, to(out), context);
      cpu::run(to(wanted), context);
      // Equal but where a last bit's difference in double precision crosses a rounding limit.
      EXPECT_TRUE(close(out, wanted, type() == program::DType::f32 ? 1.2e-7 : 4e-3));
    }
  }
}

TEST_P(Random, FillRandom) {
  for (const std::int64_t n : {std::int64_t{3}, std::int64_t{30001}}) {
    Buffer out(type(), n);
    const Buffer wanted = random(type(), n, 77);
    cuda::fill_random(nullptr, out, 77);
    for (std::int64_t i = 0; i < n; ++i) {
      ASSERT_NEAR(out[i], wanted[i], type() == program::DType::f32 ? 1e-3 : 3e-2) << i;
    }
  }
}

}  // namespace
}  // namespace harness::test
