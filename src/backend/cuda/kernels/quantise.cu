#include <algorithm>

#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/reductions.cuh"

namespace harness::cuda {
namespace {

// With one scale per tensor, two launches: the first finds the largest magnitude of each part of the tensor; each block
// of the second takes the largest of the parts and encodes. Both read the tensor: bf16 costs 2 + 2 + 1 bytes per
// element, and 1 more for the transpose. With block scales, one launch, 2 + 1 + 1. Sizes are multiples of
// program::fp8_multiple.

constexpr int quantise_threads = 256;
constexpr int tile = 64, quad = 4, quads = tile / quad;  // a block's part of the matrix; elements of a thread's word
constexpr int rows_at_once = quantise_threads / quads;
constexpr std::int64_t most_parts = 1024;

std::int64_t parts_of(std::int64_t count) {
  constexpr std::int64_t least = quantise_threads * 32;  // elements of a part
  return std::clamp<std::int64_t>(ceil_div(count, least), 1, most_parts);
}

__device__ __forceinline__ float infinity() {
  return __uint_as_float(0x7f800000u);
}

__device__ __forceinline__ float magnitude_of(float x) {
  return x == x ? fabsf(x) : infinity();
}

/// parts[block] = the largest magnitude of the block's elements, infinite if one of them is NaN.
template <class T>
__global__ void __launch_bounds__(quantise_threads)
    largest_of_parts(const T* in, std::int64_t count, std::int64_t blocks, float* parts) {
  HARNESS_SHARED(float, maxima, max_warps);
  constexpr int n = lanes_of<T>;
  float largest = 0;
  const std::int64_t stride = blocks * quantise_threads * n;
  for (std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * quantise_threads + threadIdx.x) * n; i < count;
       i += stride) {
    float v[n];
    load(in + i, v);
#pragma unroll
    for (int k = 0; k < n; ++k) largest = fmaxf(largest, magnitude_of(v[k]));
  }
  largest = block_maximum(largest, maxima);
  if (threadIdx.x == 0) parts[blockIdx.x] = largest;
}

template <bool is_e4m3>
__device__ __forceinline__ std::uint32_t codes_of(const float (&v)[quad], float inverse) {
  return fp8_pair<is_e4m3>(v[0] * inverse, v[1] * inverse) |
         static_cast<std::uint32_t>(fp8_pair<is_e4m3>(v[2] * inverse, v[3] * inverse)) << 16;
}

/// Quantises one tile of in [rows, width] into `out` and `transposed`, either of which may be null.
template <class T, bool is_e4m3>
__global__ void __launch_bounds__(quantise_threads)
    quantise_tiles(const T* in, std::int64_t rows, std::int64_t width, std::int64_t tiles_of_row, const float* parts,
                   int part_count, std::uint8_t* out, std::uint8_t* transposed, float* scale) {
  HARNESS_SHARED(float, maxima, max_warps);
  HARNESS_SHARED(std::uint32_t, codes, tile * (quads + 1));  // a padding word per row: fewer bank conflicts by columns
  float largest = 0;
  for (int i = threadIdx.x; i < part_count; i += quantise_threads) largest = fmaxf(largest, parts[i]);
  largest = block_maximum(largest, maxima);
  constexpr Fp8Format format = is_e4m3 ? e4m3_format : e5m2_format;
  const Fp8Scale of_tensor(format, __float_as_uint(largest));
  const float inverse = __uint_as_float(of_tensor.inverse_bits());
  if (blockIdx.x == 0 && threadIdx.x == 0) *scale = __uint_as_float(power_of_two_bits(of_tensor.exponent));

  const std::int64_t first_row = blockIdx.x / tiles_of_row * tile, first_column = blockIdx.x % tiles_of_row * tile;
  const int lane = threadIdx.x % quads;
#pragma unroll
  for (int r = threadIdx.x / quads; r < tile; r += rows_at_once) {
    const std::int64_t row = first_row + r, column = first_column + lane * quad;
    if (row >= rows || column >= width) continue;
    float v[quad];
    load(in + row * width + column, v);
    const std::uint32_t word = codes_of<is_e4m3>(v, inverse);
    if (out) store_as(out + row * width + column, word);
    codes[r * (quads + 1) + lane] = word;
  }
  if (!transposed) return;
  __syncthreads();
#pragma unroll
  for (int c = threadIdx.x / quads; c < tile; c += rows_at_once) {
    const std::int64_t column = first_column + c, row = first_row + lane * quad;
    if (row >= rows || column >= width) continue;
    std::uint32_t word = 0;
#pragma unroll
    for (int k = 0; k < quad; ++k) {
      const std::uint32_t four = codes[(lane * quad + k) * (quads + 1) + c / quad];
      word |= (four >> 8 * (c % quad) & 0xffu) << 8 * k;
    }
    store_as(transposed + column * rows + row, word);
  }
}

/// Stores four elements of a row of [rows, width] from `column` on; neighbouring threads hold the rest of their block.
/// The whole warp must call it, threads outside the matrix with zeros, which fill up the tiles of scales.
template <bool is_e4m3>
__device__ __forceinline__ void store_scaled(const float (&v)[quad], std::int64_t row, std::int64_t column,
                                             std::int64_t rows, std::int64_t width, std::uint8_t* out,
                                             std::uint8_t* scales) {
  float largest = 0;
#pragma unroll
  for (int k = 0; k < quad; ++k) largest = fmaxf(largest, magnitude_of(v[k]));
  largest = group_maximum(largest, mx_block / quad);
  constexpr Fp8Format format = is_e4m3 ? e4m3_format : e5m2_format;
  const Fp8Scale scale(format, __float_as_uint(largest));
  const bool inside = row < rows && column < width;
  if (inside) store_as(out + row * width + column, codes_of<is_e4m3>(v, __uint_as_float(scale.inverse_bits())));
  if (column % mx_block == 0)
    scales[block_scale_offset(row, column / mx_block, width)] = inside ? scale.e8m0() : std::uint8_t{0};
}

/// quantise_tiles() with block scales. The tiles cover the padding of the scales too.
template <class T, bool is_e4m3>
__global__ void __launch_bounds__(quantise_threads)
    quantise_blocks(const T* in, std::int64_t rows, std::int64_t width, std::int64_t tiles_of_row, std::uint8_t* out,
                    std::uint8_t* scales, std::uint8_t* transposed, std::uint8_t* transposed_scales) {
  HARNESS_SHARED(float, values, tile*(tile + 1));  // a padding float per row: fewer bank conflicts by columns
  const std::int64_t first_row = blockIdx.x / tiles_of_row * tile, first_column = blockIdx.x % tiles_of_row * tile;
  const int lane = threadIdx.x % quads;
#pragma unroll
  for (int r = threadIdx.x / quads; r < tile; r += rows_at_once) {
    const std::int64_t row = first_row + r, column = first_column + lane * quad;
    float v[quad] = {};
    if (row < rows && column < width) load(in + row * width + column, v);
#pragma unroll
    for (int k = 0; k < quad; ++k) values[r * (tile + 1) + lane * quad + k] = v[k];
    if (out) store_scaled<is_e4m3>(v, row, column, rows, width, out, scales);
  }
  if (!transposed) return;
  __syncthreads();
#pragma unroll
  for (int c = threadIdx.x / quads; c < tile; c += rows_at_once) {
    float v[quad];
#pragma unroll
    for (int k = 0; k < quad; ++k) v[k] = values[(lane * quad + k) * (tile + 1) + c];
    store_scaled<is_e4m3>(v, first_column + c, first_row + lane * quad, width, rows, transposed, transposed_scales);
  }
}

}  // namespace

std::int64_t scratch_floats(const program::Quantise& op) {
  const std::int64_t sums =
      op.bias_gradient.present() ? scratch_floats(program::ColumnSum{.rows = op.rows, .width = op.width}) : 0;
  return std::max(parts_of(op.rows * op.width), sums);
}

void run(Stream stream, const backend::Bound<program::Quantise>& op, const backend::KernelContext& context) {
  const std::int64_t rows = op.rows, width = op.width, count = rows * width, parts = parts_of(count);
  backend::with_type(op.in.type, [&](auto tag) {
    using T = decltype(tag);
    const T* in = op.in.as<const T>();
    auto *out = op.out.as<std::uint8_t>(), *transposed = op.out_transposed.as<std::uint8_t>();
    const bool is_e4m3 = op.either().type == program::DType::e4m3;
    if (program::are_of_blocks(op.either_scale().type)) {
      constexpr std::int64_t tiles = 128 / tile;  // along a tile of scales
      const std::int64_t tiles_of_row = ceil_div(width, 128) * tiles;
      const auto start = [&](auto kernel) {
        launch("quantise", kernel, {tiles_of_row * ceil_div(rows, 128) * tiles, quantise_threads}, stream, in, rows,
               width, tiles_of_row, out, op.scale.as<std::uint8_t>(), transposed,
               op.scale_transposed.as<std::uint8_t>());
      };
      return is_e4m3 ? start(quantise_blocks<T, true>) : start(quantise_blocks<T, false>);
    }
    launch("quantise (largest)", largest_of_parts<T>, {parts, quantise_threads}, stream, in, count, parts,
           context.scratch);
    const std::int64_t tiles_of_row = ceil_div(width, tile);
    const auto start = [&](auto kernel) {
      launch("quantise", kernel, {tiles_of_row * ceil_div(rows, tile), quantise_threads}, stream, in, rows, width,
             tiles_of_row, context.scratch, parts, out, transposed, op.scale.f32());
    };
    is_e4m3 ? start(quantise_tiles<T, true>) : start(quantise_tiles<T, false>);
  });
  if (op.bias_gradient)
    run(stream, backend::Bound<program::ColumnSum>{op.in, op.bias_gradient, rows, width, op.accumulate}, context);
}

}  // namespace harness::cuda
