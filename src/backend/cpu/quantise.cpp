#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"

namespace harness::cpu {
namespace {

// As integers, the bits of |x| sort like |x|, with infinity and then NaN above all numbers.
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

// Quantises a tensor with a single scale.
template <class T>
void quantise_tensor(const backend::Bound<program::Quantise>& op, const Fp8Format& format) {
  const std::int64_t rows = op.rows, width = op.width;
  const T* from = op.in.as<const T>();
  const Fp8Scale scale(format, largest_magnitude(from, op.in.count));
  const auto inverse = std::bit_cast<float>(scale.inverse_bits());
  *op.scale.f32() = std::bit_cast<float>(power_of_two_bits(scale.exponent));
  auto *out = op.out.as<std::uint8_t>(), *transposed = op.out_transposed.as<std::uint8_t>();
  parallel_rows(rows, width, [&](std::int64_t r) {
    for (std::int64_t c = 0; c < width; ++c) {
      const float x = to_float(from[r * width + c]) * inverse;
      const std::uint8_t code = nearest_fp8(format, std::bit_cast<std::uint32_t>(x));
      if (out != nullptr) out[r * width + c] = code;
      if (transposed != nullptr) transposed[c * rows + r] = code;
    }
  });
}

// Fills one of the two outputs with block scales: `rows` of `width` elements, element (r, c) of which is from[r *
// between_rows + c * between_columns].
template <class T>
void quantise_blocks(const T* from, std::int64_t rows, std::int64_t width, std::int64_t between_rows,
                     std::int64_t between_columns, const Fp8Format& format, const backend::Tensor& out,
                     const backend::Tensor& scales) {
  if (!out) return;
  std::memset(scales.data, 0, scales.bytes());
  parallel_rows(rows, width, [&](std::int64_t r) {
    for (std::int64_t first = 0; first < width; first += mx_block) {
      std::array<std::uint32_t, mx_block> x{};
      std::uint32_t largest = 0;
      for (std::int64_t i = 0; i < mx_block; ++i) {
        x[i] = std::bit_cast<std::uint32_t>(to_float(from[r * between_rows + (first + i) * between_columns]));
        largest = std::max(largest, x[i] & 0x7fffffffu);
      }
      const Fp8Scale scale(format, largest);
      const auto inverse = std::bit_cast<float>(scale.inverse_bits());
      for (std::int64_t i = 0; i < mx_block; ++i) {
        const float scaled = std::bit_cast<float>(x[i]) * inverse;
        out.as<std::uint8_t>()[r * width + first + i] = nearest_fp8(format, std::bit_cast<std::uint32_t>(scaled));
      }
      scales.as<std::uint8_t>()[block_scale_offset(r, first / mx_block, width)] = scale.e8m0();
    }
  });
}

}  // namespace

void run(const backend::Bound<program::Quantise>& op, const backend::KernelContext& context) {
  const Fp8Format& format = backend::fp8_format(op.either().type);
  const std::int64_t rows = op.rows, width = op.width;
  backend::with_type(op.in.type, [&](auto tag) {
    using T = decltype(tag);
    if (!program::are_of_blocks(op.either_scale().type)) return quantise_tensor<T>(op, format);
    const T* from = op.in.as<const T>();
    quantise_blocks(from, rows, width, width, 1, format, op.out, op.scale);
    quantise_blocks(from, width, rows, 1, width, format, op.out_transposed, op.scale_transposed);
  });
  if (op.bias_gradient)
    run(backend::Bound<program::ColumnSum>{op.in, op.bias_gradient, rows, width, op.accumulate}, context);
}

void widen(const backend::Tensor& codes, const backend::Tensor& scales, std::int64_t width, bf16* to) {
  const Fp8Format& format = backend::fp8_format(codes.type);
  const bool of_blocks = program::are_of_blocks(scales.type);
  const std::int64_t together = of_blocks ? mx_block : width;  // elements of a row that share a scale
  std::array<float, 256> number{};
  for (std::size_t code = 0; code < number.size(); ++code)
    number[code] = fp8_to_float(format, static_cast<std::uint8_t>(code));
  const auto* from = codes.as<const std::uint8_t>();
  parallel_rows(codes.count / width, width, [&](std::int64_t r) {
    for (std::int64_t first = 0; first < width; first += together) {
      const std::int64_t at = of_blocks ? block_scale_offset(r, first / mx_block, width) : 0;
      const float scale = of_blocks ? e8m0_to_float(scales.as<const std::uint8_t>()[at]) : *scales.f32();
      for (std::int64_t i = r * width + first; i < r * width + first + together; ++i)
        to[i] = to_bf16(number[from[i]] * scale);
    }
  });
}

}  // namespace harness::cpu
