#include <algorithm>

#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/reductions.cuh"

namespace harness::cuda {
namespace {

// Radix selection, as on the cpu: finds the smallest magnitude that is kept, digit by digit from the highest, each from
// a histogram of the magnitudes that share the digits so far. Each block then knows how many elements are kept before
// its range, and writes its own. Counts are integers, so the order of blocks does not change the result. At 4 bytes per
// element, the launches read gradient and residual once and the residual four times more.

constexpr int threads = 256, warps = threads / 32, batch = 4;
constexpr int digit_bits = 11, digits = 1 << digit_bits;
constexpr std::int64_t most_blocks = 1024, blocks_per_multiprocessor = 8;

/// Scratch of a TopK.
struct Selection {
  std::uint32_t least;  // smallest magnitude that is kept, or its digits so far
  std::uint32_t equal;  // how many elements of that magnitude are kept
  std::uint32_t histogram[digits];
  std::uint32_t above_of_block[most_blocks], equal_of_block[most_blocks];
};

/// Contiguous elements per block, a multiple of what it takes at once.
struct Ranges {
  std::int64_t blocks, of_block;

  explicit Ranges(std::int64_t n) {
    constexpr std::int64_t at_once = threads * batch;
    const std::int64_t room = device_limits().multiprocessors * blocks_per_multiprocessor;
    of_block = ceil_div(ceil_div(n, std::min(room, most_blocks)), at_once) * at_once;
    blocks = ceil_div(n, of_block);
  }
};

/// An integer that increases with |x|; NaN is above all numbers.
__device__ __forceinline__ std::uint32_t magnitude(float x) {
  return __float_as_uint(x) & 0x7fffffffu;
}

__global__ void __launch_bounds__(threads) begin_selection(Selection* s, std::uint32_t kept) {
  for (int i = threadIdx.x; i < digits; i += threads) s->histogram[i] = 0;
  if (threadIdx.x == 0) {
    s->least = 0;
    s->equal = kept;
  }
}

/// Counts the digits at bit `shift` of the magnitudes whose higher digits are `least`. With a gradient, adds it to the
/// residual first.
__global__ void __launch_bounds__(threads) count_digits(const float* gradient, float* residual, std::int64_t n,
                                                        std::int64_t of_block, int shift, Selection* s) {
  HARNESS_SHARED(std::uint32_t, counts, digits);
  for (int d = threadIdx.x; d < digits; d += threads) counts[d] = 0;
  __syncthreads();
  const std::uint32_t least = s->least;
  const std::int64_t first = blockIdx.x * of_block, end = first + of_block < n ? first + of_block : n;
  for (std::int64_t i = first + threadIdx.x; i < end; i += threads) {
    float x = residual[i];
    if (gradient) residual[i] = x += gradient[i];
    const std::uint32_t so_far = magnitude(x) >> shift;
    if (so_far >> digit_bits == least) atomicAdd(counts + so_far % digits, 1u);
  }
  __syncthreads();
  for (int d = threadIdx.x; d < digits; d += threads) {
    if (counts[d] > 0) atomicAdd(s->histogram + d, counts[d]);
  }
}

/// Chooses the digit at which the count, from the largest down, reaches the number kept; clears the histogram.
__global__ void __launch_bounds__(threads) choose_digit(Selection* s) {
  constexpr int own = digits / threads;
  HARNESS_SHARED(std::uint32_t, sums, threads);
  const int highest = digits - 1 - static_cast<int>(threadIdx.x) * own;
  std::uint32_t sum = 0;
  for (int k = 0; k < own; ++k) sum += s->histogram[highest - k];
  sums[threadIdx.x] = sum;
  const std::uint32_t kept = s->equal;
  __syncthreads();
  std::uint32_t before = 0;
  for (unsigned t = 0; t < threadIdx.x; ++t) before += sums[t];
  const bool is_here = before < kept && kept <= before + sum;
  for (int k = 0; k < own; ++k) {
    const std::uint32_t here = s->histogram[highest - k];
    s->histogram[highest - k] = 0;
    if (is_here && before < kept && kept <= before + here) {
      s->least = s->least << digit_bits | static_cast<std::uint32_t>(highest - k);
      s->equal = kept - before;
    }
    before += here;
  }
}

__global__ void __launch_bounds__(threads)
    count_kept(const float* residual, std::int64_t n, std::int64_t of_block, Selection* s) {
  HARNESS_SHARED(std::uint32_t, above_parts, max_warps);
  HARNESS_SHARED(std::uint32_t, equal_parts, max_warps);
  const std::uint32_t least = s->least;
  const std::int64_t first = blockIdx.x * of_block, end = first + of_block < n ? first + of_block : n;
  std::uint32_t above = 0, equal = 0;
  for (std::int64_t i = first + threadIdx.x; i < end; i += threads) {
    const std::uint32_t size = magnitude(residual[i]);
    above += size > least ? 1 : 0;
    equal += size == least ? 1 : 0;
  }
  above = block_sum(above, above_parts);
  equal = block_sum(equal, equal_parts);
  if (threadIdx.x == 0) {
    s->above_of_block[blockIdx.x] = above;
    s->equal_of_block[blockIdx.x] = equal;
  }
}

/// Numbers of elements above and at the least magnitude before an element, in index order.
struct Before {
  std::uint32_t above = 0, equal = 0;
};

/// Each warp takes `batch` times 32 neighbours at once. The first of those at the least magnitude are kept.
__global__ void __launch_bounds__(threads) write_kept(float* residual, std::int64_t n, std::int64_t of_block,
                                                      const Selection* s, float* values, std::int32_t* indices) {
  HARNESS_SHARED(std::uint32_t, above_parts, 2 * max_warps);
  HARNESS_SHARED(std::uint32_t, equal_parts, 2 * max_warps);
  const std::uint32_t least = s->least, most_equal = s->equal;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  Before block;
  for (unsigned b = threadIdx.x; b < blockIdx.x; b += threads) {
    block.above += s->above_of_block[b];
    block.equal += s->equal_of_block[b];
  }
  block.above = block_sum(block.above, above_parts);
  block.equal = block_sum(block.equal, equal_parts);

  int turn = 1;  // of the two halves of the shared arrays
  const std::int64_t first = blockIdx.x * of_block;
  for (std::int64_t at = first; at < first + of_block && at < n; at += threads * batch, turn ^= 1) {
    const std::int64_t i = at + warp * 32 * batch + lane;
    float x[batch];
    std::uint32_t above[batch], equal[batch], above_of_warp = 0, equal_of_warp = 0;  // a bit per lane; totals
#pragma unroll
    for (int k = 0; k < batch; ++k) x[k] = i + k * 32 < n ? residual[i + k * 32] : 0.0f;
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      const bool is_there = i + k * 32 < n;
      above[k] = __ballot_sync(whole_warp, is_there && magnitude(x[k]) > least);
      equal[k] = __ballot_sync(whole_warp, is_there && magnitude(x[k]) == least);
      above_of_warp += __popc(above[k]);
      equal_of_warp += __popc(equal[k]);
    }
    std::uint32_t *const above_of = above_parts + turn * max_warps, *const equal_of = equal_parts + turn * max_warps;
    if (lane == 0) {
      above_of[warp] = above_of_warp;
      equal_of[warp] = equal_of_warp;
    }
    __syncthreads();
    Before mine = block;
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      if (w < warp) {
        mine.above += above_of[w];
        mine.equal += equal_of[w];
      }
      block.above += above_of[w];
      block.equal += equal_of[w];
    }
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      const std::uint32_t lower = (1u << lane) - 1, bit = 1u << lane;
      const std::uint32_t above_before = mine.above + __popc(above[k] & lower),
                          equal_before = mine.equal + __popc(equal[k] & lower);
      if ((above[k] & bit) != 0 || ((equal[k] & bit) != 0 && equal_before < most_equal)) {
        const std::uint32_t place = above_before + (equal_before < most_equal ? equal_before : most_equal);
        values[place] = x[k];
        indices[place] = static_cast<std::int32_t>(i + k * 32);
        residual[i + k * 32] = 0;
      }
      mine.above += __popc(above[k]);
      mine.equal += __popc(equal[k]);
    }
  }
}

constexpr int scatter_tile = 4096;  // elements of the output that a block sums in shared memory

__device__ __forceinline__ std::int64_t first_not_below(const std::int32_t* indices, std::int64_t count,
                                                        std::int64_t index) {
  std::int64_t first = 0;
  while (count > 0) {
    const std::int64_t half = count / 2;
    if (indices[first + half] < index) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}

/// Adds one part after another, so that the order of additions is fixed.
__global__ void __launch_bounds__(threads)
    scatter_add(const float* values, const std::int32_t* indices, std::int64_t parts, std::int64_t of_part, float* out,
                std::int64_t n) {
  HARNESS_SHARED(float, sums, scatter_tile);
  HARNESS_SHARED(std::int64_t, begins, threads);
  HARNESS_SHARED(std::int64_t, ends, threads);
  const std::int64_t first = blockIdx.x * std::int64_t{scatter_tile}, behind = first + scatter_tile,
                     end = behind < n ? behind : n;
  for (int i = threadIdx.x; i < scatter_tile; i += threads) sums[i] = 0;
  for (std::int64_t part = 0; part < parts; part += threads) {
    const std::int64_t own = part + threadIdx.x;
    if (own < parts) {
      begins[threadIdx.x] = own * of_part + first_not_below(indices + own * of_part, of_part, first);
      ends[threadIdx.x] = own * of_part + first_not_below(indices + own * of_part, of_part, end);
    }
    __syncthreads();
    for (int p = 0; p < threads && part + p < parts; ++p) {
      for (std::int64_t j = begins[p] + threadIdx.x; j < ends[p]; j += threads) sums[indices[j] - first] += values[j];
      __syncthreads();
    }
  }
  for (std::int64_t i = first + threadIdx.x; i < end; i += threads) out[i] = sums[i - first];
}

}  // namespace

std::int64_t scratch_floats(const program::TopK& /*op*/) {
  return sizeof(Selection) / sizeof(float);
}

void run(Stream stream, const backend::Bound<program::TopK>& op, const backend::KernelContext& context) {
  auto* s = reinterpret_cast<Selection*>(context.scratch);
  const std::int64_t n = op.residual.count;
  const Ranges ranges(n);
  const Grid grid{ranges.blocks, threads};
  float* residual = op.residual.f32();
  const float* gradient = op.gradient.f32();
  launch("begin_selection", begin_selection, {1, threads}, stream, s, op.values.count);
  for (const int shift : {2 * digit_bits, digit_bits, 0}) {
    launch("count_digits", count_digits, grid, stream, gradient, residual, n, ranges.of_block, shift, s);
    launch("choose_digit", choose_digit, {1, threads}, stream, s);
    gradient = nullptr;
  }
  launch("count_kept", count_kept, grid, stream, residual, n, ranges.of_block, s);
  launch("write_kept", write_kept, grid, stream, residual, n, ranges.of_block, s, op.values.f32(),
         op.indices.as<std::int32_t>());
}

void run(Stream stream, const backend::Bound<program::ScatterAdd>& op, const backend::KernelContext& /*context*/) {
  launch("scatter_add", scatter_add, {ceil_div(op.out.count, scatter_tile), threads}, stream, op.values.f32(),
         op.indices.i32(), op.parts, op.values.count / op.parts, op.out.f32(), op.out.count);
}

}  // namespace harness::cuda
