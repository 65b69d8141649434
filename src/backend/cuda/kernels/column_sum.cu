#include <algorithm>

#include "backend/cuda/kernels/partial_sums.cuh"

namespace harness::cuda {
namespace {

// Enough slices that a large device is busy with narrow matrices too, none of less than 32 rows.
std::int64_t slices_of(std::int64_t rows, std::int64_t width) {
  const std::int64_t wanted = std::clamp<std::int64_t>(512 * 1024 / std::max<std::int64_t>(width, 1), 16, 512);
  return std::clamp<std::int64_t>(ceil_div(rows, 32), 1, wanted);
}

}  // namespace

std::int64_t scratch_floats(const program::ColumnSum& op) {
  return slices_of(op.rows, op.width) * op.width;
}

void run(Stream stream, const backend::Bound<program::ColumnSum>& op, const backend::KernelContext& context) {
  const std::int64_t rows = op.rows, width = op.width;
  float* scratch = context.scratch;
  const std::int64_t slices = slices_of(rows, width);
  backend::with_type(op.in.type, [&](auto tag) {
    using T = decltype(tag);
    const auto start = [&](auto kernel, int n) {
      const std::int64_t tiles = ceil_div(width, tile_lanes * n);
      launch("column_sum", kernel, {tiles * slices, tile_lanes * tile_groups}, stream, op.in.as<const T>(), rows, width,
             tiles, ceil_div(rows, slices), scratch);
    };
    constexpr int n = lanes_of<T>;
    width % n == 0 ? start(sum_slices<T, n>, n) : start(sum_slices<T, 1>, 1);
  });
  launch_finish_sums("column_sum (second stage)", stream, {scratch, slices, width, 1, {op.out.f32()}, op.accumulate});
}

}  // namespace harness::cuda
