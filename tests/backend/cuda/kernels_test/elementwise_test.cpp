#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels/kernels.h"
#include "buffers.h"

namespace harness::test {
namespace {

class Elementwise : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, Elementwise, both_types(), type_name);

// One element; less than a vector; a whole tile of one block; tiles and a tail that is no multiple of a vector.
constexpr std::int64_t counts[] = {1, 5, 4096, 8192, 20001};

struct Shape {
  std::int64_t rows, width;
};
constexpr Shape shapes[] = {{1, 1}, {7, 64}, {6, 83}, {5, 4104}, {9, 1027}};

TEST_P(Elementwise, Gelu) {
  for (const std::int64_t n : counts) {
    const Buffer in = random(type(), n, 1, 3);
    Buffer out(type(), n), wanted(type(), n);
    cuda::run(nullptr, backend::Bound<program::Gelu>{in, out});
    cpu::run(backend::Bound<program::Gelu>{in, wanted});
    EXPECT_TRUE(close(out, wanted, limit())) << n;
  }
}

TEST_P(Elementwise, GeluFarFromZero) {
  Buffer in(type(), 8), out(type(), 8);
  const double x[] = {-1e4, -30, -6, 0, 6, 30, 1e4, -0.0}, wanted[] = {0, 0, 0, 0, 6, 30, 9984, 0};
  for (int i = 0; i < 8; ++i) in.set(i, x[i]);
  cuda::run(nullptr, backend::Bound<program::Gelu>{in, out});
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(out[i], wanted[i], 16) << x[i];
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(out[i], wanted[i], 1e-6) << x[i];
}

TEST_P(Elementwise, GeluBackward) {
  for (const std::int64_t n : counts) {
    const Buffer in = random(type(), n, 1, 3);
    Buffer data = random(type(), n, 2), wanted = data;
    cuda::run(nullptr, backend::Bound<program::GeluBackward>{in, data});
    cpu::run(backend::Bound<program::GeluBackward>{in, wanted});
    EXPECT_TRUE(close(data, wanted, limit())) << n;
  }
}

TEST_P(Elementwise, SwiGluAndItsSlope) {
  for (const Shape s : shapes) {
    const std::int64_t n = s.rows * s.width;
    const Buffer in = random(type(), 2 * n, 1, 3), dout = random(type(), n, 2);
    Buffer out(type(), n), wanted(type(), n), din(type(), 2 * n), wanted_din(type(), 2 * n);
    cuda::run(nullptr, backend::Bound<program::SwiGlu>{in, out, s.rows, s.width});
    cpu::run(backend::Bound<program::SwiGlu>{in, wanted, s.rows, s.width});
    EXPECT_TRUE(close(out, wanted, limit())) << s.rows << " x " << s.width;
    cuda::run(nullptr, backend::Bound<program::SwiGluBackward>{in, dout, din, s.rows, s.width});
    cpu::run(backend::Bound<program::SwiGluBackward>{in, dout, wanted_din, s.rows, s.width});
    EXPECT_TRUE(close(din, wanted_din, limit())) << s.rows << " x " << s.width;
  }
}

// Heads of one pair, of no whole warp, of a warp and of more pairs than a block has threads; something behind them.
TEST_P(Elementwise, Rope) {
  for (const std::int64_t head_dim : {2, 22, 64, 1040}) {
    for (const bool backward : {false, true}) {
      const std::int64_t sequence = 37, rows = 2 * sequence, heads = 3, stride = heads * head_dim + 5;
      const std::int64_t n = (rows - 1) * stride + heads * head_dim;
      Buffer data = random(type(), n, 1), wanted = data;
      const auto rope = [&](Buffer& of) {
        return backend::Bound<program::Rope>{of, rows, stride, heads, head_dim, sequence, 500, backward};
      };
      const Scratch scratch(cpu::scratch_floats(program::Rope{.head_dim = head_dim}, 16));
      cuda::run(nullptr, rope(data));
      cpu::run(rope(wanted), {.scratch = scratch});
      EXPECT_TRUE(close(data, wanted, limit())) << head_dim << (backward ? ", backward" : "");
      for (std::int64_t r = 0; r + 1 < rows; ++r) {
        for (std::int64_t c = heads * head_dim; c < stride; ++c)
          ASSERT_EQ(data[r * stride + c], wanted[r * stride + c]) << head_dim;
      }
    }
  }
}

TEST_P(Elementwise, ResidualAdd) {
  for (const Shape s : shapes) {
    for (int parts = 0; parts < 8; ++parts) {
      const std::int64_t n = s.rows * s.width;
      const Buffer bias = random(type(), s.width, 2), residual = random(type(), n, 3);
      const backend::Tensor b = parts & 1 ? bias.tensor() : backend::Tensor{},
                            r = parts & 2 ? residual.tensor() : backend::Tensor{};
      const bool in_place = parts & 4;
      Buffer in = random(type(), n, 1), out(type(), n), wanted(type(), n);
      cpu::run(backend::Bound<program::ResidualAdd>{in, b, r, wanted, s.rows, s.width});
      cuda::run(nullptr, backend::Bound<program::ResidualAdd>{in, b, r, in_place ? in : out, s.rows, s.width});
      EXPECT_TRUE(close(in_place ? in : out, wanted, limit())) << s.rows << " x " << s.width << ", parts " << parts;
    }
  }
}

TEST_P(Elementwise, ColumnSum) {
  // The last two: several slices, the last one shorter.
  constexpr Shape more[] = {{1, 1}, {3, 64}, {31, 83}, {200, 264}, {129, 1027}, {1000, 40}};
  for (const Shape s : more) {
    for (const bool accumulate : {false, true}) {
      const Buffer in = random(type(), s.rows * s.width, 1);
      Buffer out = accumulate ? random(program::DType::f32, s.width, 2) : Buffer(program::DType::f32, s.width),
             wanted = out;
      const Scratch scratch(cuda::scratch_floats(program::ColumnSum{.rows = s.rows, .width = s.width}));
      cuda::run(nullptr, backend::Bound<program::ColumnSum>{in, out, s.rows, s.width, accumulate},
                {.scratch = scratch});
      cpu::run(backend::Bound<program::ColumnSum>{in, wanted, s.rows, s.width, accumulate});
      EXPECT_TRUE(close(out, wanted, 1e-5)) << s.rows << " x " << s.width;
    }
  }
}

TEST_P(Elementwise, Convert) {
  for (const std::int64_t n : counts) {
    const Buffer in = random(type(), n, 1);
    for (const program::DType to : {program::DType::f32, program::DType::bf16}) {
      Buffer out(to, n), wanted(to, n);
      cuda::run(nullptr, backend::Bound<program::Convert>{in, out});
      cpu::run(backend::Bound<program::Convert>{in, wanted});
      EXPECT_TRUE(close(out, wanted, 0)) << n;
    }
  }
}

TEST_P(Elementwise, Fill) {
  for (const std::int64_t n : counts) {
    Buffer out(type(), n), wanted(type(), n);
    cuda::run(nullptr, backend::Bound<program::Fill>{out, 0.3});
    cpu::run(backend::Bound<program::Fill>{wanted, 0.3});
    EXPECT_TRUE(close(out, wanted, 0)) << n;
  }
}

TEST(Integers, FillAndCopy) {
  Buffer out(program::DType::i32, 1001), copy(program::DType::i32, 1001);
  cuda::run(nullptr, backend::Bound<program::Fill>{out, -70001});
  cuda::run(nullptr, backend::Bound<program::Convert>{out, copy});
  for (std::int64_t i = 0; i < 1001; ++i) ASSERT_EQ(copy[i], -70001);
}

TEST(Integers, AreNotConverted) {
  const Buffer in(program::DType::i32, 8), out(program::DType::bf16, 8);
  EXPECT_THROW(cuda::run(nullptr, (backend::Bound<program::Convert>{in, out})), Error);
  EXPECT_THROW(cuda::run(nullptr, (backend::Bound<program::Gelu>{in, in})), Error);
}

TEST(Record, WritesTheRingAndCounts) {
  Buffer value(program::DType::f32, 1), ring(program::DType::f32, 3), counter(program::DType::i32, 1);
  counter.set(0, 0);
  for (int step = 0; step < 5; ++step) {
    value.set(0, 10 + step);
    cuda::run(nullptr, backend::Bound<program::Record>{value, ring, counter});
    EXPECT_EQ(counter[0], step + 1);
    EXPECT_EQ(ring[step % 3], 10 + step);
    if (step == 0) {
      EXPECT_TRUE(std::isnan(ring[1]) && std::isnan(ring[2]));
    }
  }
  EXPECT_EQ(ring[2], 12);
}

TEST(Spin, TakesItsTime) {
  cuda::spin(nullptr, 0);
  cuda::spin(nullptr, 1e-4);
}

}  // namespace
}  // namespace harness::test
