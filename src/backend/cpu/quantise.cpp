#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <limits>

#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"

namespace harness::cpu {
namespace {

// Compared as whole numbers, magnitudes of floats are in order, with infinity and then NaN above all numbers.
template <class T>
std::uint32_t largest_magnitude(const T* in, std::int64_t count) {
  std::atomic<std::uint32_t> largest{0};
  parallel_ranges(count, elementwise_grain, [&](std::int64_t first, std::int64_t last, int) {
    std::uint32_t own = 0;
    for (std::int64_t i = first; i < last; ++i)
      own = std::max(own, std::bit_cast<std::uint32_t>(to_float(in[i])) & 0x7fffffffu);
    std::uint32_t known = largest.load();
    while (known < own && !largest.compare_exchange_weak(known, own)) {
    }
  });
  return largest.load();
}

}  // namespace

void run(const backend::Bound<program::Quantise>& op, const backend::KernelContext& context) {
  const Fp8Format format = backend::fp8_format(op.either().type);
  const std::int64_t rows = op.rows, width = op.width;
  backend::with_type(op.in.type, [&](auto tag) {
    using T = decltype(tag);
    const T* from = op.in.as<const T>();
    const std::uint32_t largest = largest_magnitude(from, op.in.count);
    const bool finite = largest < std::bit_cast<std::uint32_t>(std::numeric_limits<float>::infinity());
    const int exponent = finite ? fp8_scale_exponent(format, largest) : 0;
    const float inverse =
        finite ? std::bit_cast<float>(power_of_two_bits(-exponent)) : std::numeric_limits<float>::quiet_NaN();
    *op.scale.f32() = std::bit_cast<float>(power_of_two_bits(exponent));
    auto *out = op.out.as<std::uint8_t>(), *transposed = op.out_transposed.as<std::uint8_t>();
    parallel_rows(rows, width, [&](std::int64_t r) {
      for (std::int64_t c = 0; c < width; ++c) {
        const float x = to_float(from[r * width + c]) * inverse;
        const std::uint8_t code = nearest_fp8(format, std::bit_cast<std::uint32_t>(x));
        if (out != nullptr) out[r * width + c] = code;
        if (transposed != nullptr) transposed[c * rows + r] = code;
      }
    });
  });
  if (op.bias_gradient)
    run(backend::Bound<program::ColumnSum>{op.in, op.bias_gradient, rows, width, op.accumulate}, context);
}

void widen(const backend::Tensor& codes, float scale, bf16* to) {
  const Fp8Format format = backend::fp8_format(codes.type);
  std::array<bf16, 256> number{};
  for (std::size_t code = 0; code < number.size(); ++code)
    number[code] = to_bf16(fp8_to_float(format, static_cast<std::uint8_t>(code)) * scale);
  const auto* from = codes.as<const std::uint8_t>();
  parallel_ranges(codes.count, elementwise_grain, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i) to[i] = number[from[i]];
  });
}

}  // namespace harness::cpu
