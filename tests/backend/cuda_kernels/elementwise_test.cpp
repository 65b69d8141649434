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
    cuda::run(nullptr, Bound<Gelu>{in, out});
    cpu::run(Bound<Gelu>{in, wanted});
    EXPECT_TRUE(close(out, wanted, limit())) << n;
  }
}

TEST_P(Elementwise, GeluFarFromZero) {
  Buffer in(type(), 8), out(type(), 8);
  const double x[] = {-1e4, -30, -6, 0, 6, 30, 1e4, -0.0}, wanted[] = {0, 0, 0, 0, 6, 30, 9984, 0};
  for (int i = 0; i < 8; ++i) in.set(i, x[i]);
  cuda::run(nullptr, Bound<Gelu>{in, out});
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(out[i], wanted[i], 16) << x[i];
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(out[i], wanted[i], 1e-6) << x[i];
}

TEST_P(Elementwise, GeluBackward) {
  for (const std::int64_t n : counts) {
    const Buffer in = random(type(), n, 1, 3);
    Buffer data = random(type(), n, 2), wanted = data;
    cuda::run(nullptr, Bound<GeluBackward>{in, data});
    cpu::run(Bound<GeluBackward>{in, wanted});
    EXPECT_TRUE(close(data, wanted, limit())) << n;
  }
}

TEST_P(Elementwise, ResidualAdd) {
  for (const Shape s : shapes) {
    for (int parts = 0; parts < 8; ++parts) {
      const std::int64_t n = s.rows * s.width;
      const Buffer bias = random(type(), s.width, 2), residual = random(type(), n, 3);
      const Tensor b = parts & 1 ? bias.tensor() : Tensor{}, r = parts & 2 ? residual.tensor() : Tensor{};
      const bool in_place = parts & 4;
      Buffer in = random(type(), n, 1), out(type(), n), wanted(type(), n);
      cpu::run(Bound<ResidualAdd>{in, b, r, wanted, s.rows, s.width});
      cuda::run(nullptr, Bound<ResidualAdd>{in, b, r, in_place ? in : out, s.rows, s.width});
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
      Buffer out = accumulate ? random(DType::f32, s.width, 2) : Buffer(DType::f32, s.width), wanted = out;
      const Scratch scratch(cuda::scratch_floats(ColumnSum{.rows = s.rows, .width = s.width}));
      cuda::run(nullptr, Bound<ColumnSum>{in, out, s.rows, s.width, accumulate}, {.scratch = scratch});
      cpu::run(Bound<ColumnSum>{in, wanted, s.rows, s.width, accumulate});
      EXPECT_TRUE(close(out, wanted, 1e-5)) << s.rows << " x " << s.width;
    }
  }
}

TEST_P(Elementwise, Convert) {
  for (const std::int64_t n : counts) {
    const Buffer in = random(type(), n, 1);
    for (const DType to : {DType::f32, DType::bf16}) {
      Buffer out(to, n), wanted(to, n);
      cuda::run(nullptr, Bound<Convert>{in, out});
      cpu::run(Bound<Convert>{in, wanted});
      EXPECT_TRUE(close(out, wanted, 0)) << n;
    }
  }
}

TEST_P(Elementwise, Fill) {
  for (const std::int64_t n : counts) {
    Buffer out(type(), n), wanted(type(), n);
    cuda::run(nullptr, Bound<Fill>{out, 0.3});
    cpu::run(Bound<Fill>{wanted, 0.3});
    EXPECT_TRUE(close(out, wanted, 0)) << n;
  }
}

TEST(Integers, FillAndCopy) {
  Buffer out(DType::i32, 1001), copy(DType::i32, 1001);
  cuda::run(nullptr, Bound<Fill>{out, -70001});
  cuda::run(nullptr, Bound<Convert>{out, copy});
  for (std::int64_t i = 0; i < 1001; ++i) ASSERT_EQ(copy[i], -70001);
}

TEST(Integers, AreNotConverted) {
  const Buffer in(DType::i32, 8), out(DType::bf16, 8);
  EXPECT_THROW(cuda::run(nullptr, (Bound<Convert>{in, out})), Error);
  EXPECT_THROW(cuda::run(nullptr, (Bound<Gelu>{in, in})), Error);
}

TEST(Record, WritesTheRingAndCounts) {
  Buffer value(DType::f32, 1), ring(DType::f32, 3), counter(DType::i32, 1);
  counter.set(0, 0);
  for (int step = 0; step < 5; ++step) {
    value.set(0, 10 + step);
    cuda::run(nullptr, Bound<Record>{value, ring, counter});
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
