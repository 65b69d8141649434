#include <algorithm>

#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels/kernels.h"
#include "buffers.h"

namespace harness::test {
namespace {

struct NormShape {
  std::int64_t rows, width;
};
// Rows in registers, in one thread and in many; not for vectors; wider than registers hold; and (backward) with column
// sums too many for registers, then for shared memory.
constexpr NormShape norm_shapes[] = {{1, 8},    {5, 16},   {130, 64},  {67, 83},   {9, 1027},
                                     {6, 2048}, {5, 5120}, {3, 12288}, {4, 16392}, {4, 20000}};

std::string of(NormShape s, int variant) {
  return std::to_string(s.rows) + " x " + std::to_string(s.width) + ", variant " + std::to_string(variant);
}

// LayerNorm takes a mean off and adds beta, RmsNorm does neither.
template <class Op>
constexpr bool centres = requires(Op op) {
  op.mean;
};

class Norms : public PerType {
 protected:
  template <class Norm>
  void check_forward() const {
    for (const NormShape s : norm_shapes) {
      for (int parts = 0; parts < 4; ++parts) {
        const std::int64_t n = s.rows * s.width;
        const Buffer in = random(type(), n, 1, 1, 0.5), gamma = random(type(), s.width, 2),
                     beta = random(type(), s.width, 3), bias = random(type(), s.width, 4),
                     residual = random(type(), n, 5, 2);
        struct Outputs {
          Outputs(program::DType type, NormShape shape)
              : sum(type, shape.rows * shape.width), out(sum), mean(program::DType::f32, shape.rows), rstd(mean) {}
          Buffer sum, out, mean, rstd;
        } got(type(), s), wanted(type(), s);
        const auto norm = [&](Outputs& to) {
          backend::Bound<Norm> op;
          op.in = in;
          if (parts & 1) op.bias = bias;
          if (parts & 2) op.residual = residual;
          op.gamma = gamma;
          if (parts) op.sum = to.sum;
          op.out = to.out;
          op.rstd = to.rstd;
          if constexpr (centres<Norm>) {
            op.beta = beta;
            op.mean = to.mean;
          }
          op.rows = s.rows;
          op.width = s.width;
          return op;
        };
        cuda::run(nullptr, norm(got));
        cpu::run(norm(wanted));
        if (parts) {
          EXPECT_TRUE(close(got.sum, wanted.sum, limit())) << of(s, parts);
        }
        EXPECT_TRUE(close(got.out, wanted.out, limit())) << of(s, parts);
        for (std::int64_t r = 0; r < s.rows && centres<Norm>; ++r) {
          EXPECT_NEAR(got.mean[r], wanted.mean[r], 1e-5) << of(s, parts);
        }
        EXPECT_TRUE(close(got.rstd, wanted.rstd, 1e-5)) << of(s, parts);
      }
    }
  }

  template <class Backward>
  void check_backward() const {
    for (const NormShape s : norm_shapes) {
      for (int variant = 0; variant < 8; ++variant) {
        if (s.width > 6000 && variant % 7 != 0 && variant != 3) continue;  // 0, 3, 7: each both ways
        const bool with_residual = variant & 1, with_bias = variant & 2, accumulate = variant & 4;
        const std::int64_t n = s.rows * s.width;
        const Buffer dout = random(type(), n, 1), x = random(type(), n, 2, 3), gamma = random(type(), s.width, 3),
                     dresidual = random(type(), n, 4);
        // Those of x, up to noise: the formula does not mind.
        const Buffer mean = random(program::DType::f32, s.rows, 5, 0.01),
                     rstd = random(program::DType::f32, s.rows, 6, 0.01, 0.33);
        struct Outputs {
          Outputs(program::DType type, NormShape shape, bool old)
              : din(type, shape.rows * shape.width),
                dgamma(old ? random(program::DType::f32, shape.width, 7) : Buffer(program::DType::f32, shape.width)),
                dbeta(dgamma),
                dbias(dgamma) {}
          Buffer din, dgamma, dbeta, dbias;
        } got(type(), s, accumulate), wanted(type(), s, accumulate);
        const auto gradients = [&](Outputs& to) {
          backend::Bound<Backward> op;
          op.dout = dout;
          op.sum = x;
          op.gamma = gamma;
          op.rstd = rstd;
          if (with_residual) op.dresidual = dresidual;
          op.din = to.din;
          op.dgamma = to.dgamma;
          if constexpr (centres<Backward>) {
            op.mean = mean;
            op.dbeta = to.dbeta;
          }
          if (with_bias) op.dbias = to.dbias;
          op.rows = s.rows;
          op.width = s.width;
          op.accumulate = accumulate;
          return op;
        };
        const Backward sizes{.rows = s.rows, .width = s.width};
        const Scratch scratch(cuda::scratch_floats(sizes)), cpu_scratch(cpu::scratch_floats(sizes, 16));
        cuda::run(nullptr, gradients(got), {.scratch = scratch});
        cpu::run(gradients(wanted), {.scratch = cpu_scratch});
        EXPECT_TRUE(close(got.din, wanted.din, limit())) << of(s, variant);
        EXPECT_TRUE(close(got.dgamma, wanted.dgamma, 2e-5)) << of(s, variant);
        if (centres<Backward>) {
          EXPECT_TRUE(close(got.dbeta, wanted.dbeta, 2e-5)) << of(s, variant);
        }
        // The sum of din as rounded: an element that falls to the other side of a tie shows.
        if (with_bias) {
          EXPECT_TRUE(close(got.dbias, wanted.dbias, limit())) << of(s, variant);
        }
      }
    }
  }
};

class LayerNorms : public Norms {};
INSTANTIATE_TEST_SUITE_P(Types, LayerNorms, both_types(), type_name);
class RmsNorms : public Norms {};
INSTANTIATE_TEST_SUITE_P(Types, RmsNorms, both_types(), type_name);

TEST_P(LayerNorms, Forward) {
  check_forward<program::LayerNorm>();
}
TEST_P(LayerNorms, Backward) {
  check_backward<program::LayerNormBackward>();
}
TEST_P(RmsNorms, Forward) {
  check_forward<program::RmsNorm>();
}
TEST_P(RmsNorms, Backward) {
  check_backward<program::RmsNormBackward>();
}

TEST_P(LayerNorms, ForwardOfLargeNumbersThatDifferLittle) {
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

}  // namespace
}  // namespace harness::test
