#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "backend/numbers.h"
#include "program/compute.h"

// The scales of matrices in 8-bit floats, as the reference computes them.
namespace harness::test {

// The positions of the scales of blocks of 32 elements. Maps positions to rows and blocks, as cuBLAS' documentation
// does ("1D Block Scaling Factors Layout": outer and inner of an offset in a tile of 128 x 4, tiles in rows).
class BlockScales {
 public:
  BlockScales(std::int64_t rows, std::int64_t width) : blocks_(width / 32), at_(rows * blocks_) {
    const std::int64_t tiles = (blocks_ + 3) / 4;
    for (std::int64_t offset = 0; offset < (rows + 127) / 128 * tiles * 512; ++offset) {
      const std::int64_t tile = offset / 512, in = offset % 512;
      const std::int64_t outer = tile / tiles * 128 + in % 16 / 4 * 32 + in / 16, inner = tile % tiles * 4 + in % 4;
      if (outer < rows && inner < blocks_) at_[outer * blocks_ + inner] = offset;
    }
  }
  std::int64_t operator()(std::int64_t row, std::int64_t block) const { return at_.at(row * blocks_ + block); }

 private:
  std::int64_t blocks_;
  std::vector<std::int64_t> at_;
};

// Returns the numbers of a factor [rows, width], multiplied by its scales if it has any.
inline std::vector<double> unscaled(const Numbers& factor, const Numbers& scale, std::int64_t rows,
                                    std::int64_t width) {
  std::vector<double> x = factor.copy();
  if (!scale.present()) return x;
  const bool of_blocks = scale.type() == program::DType::e8m0;
  const BlockScales places(of_blocks ? rows : 0, width);
  for (std::int64_t i = 0; i < rows * width; ++i) x[i] *= scale[of_blocks ? places(i / width, i % width / 32) : 0];
  return x;
}

inline double scale_of(double largest, program::DType type) {
  const double most = type == program::DType::e4m3 ? 448 : 57344;
  return largest == 0 ? 1 : std::exp2(std::ceil(std::log2(largest / most)));
}

// Quantises a matrix with block scales, or its transpose.
inline void quantise_blocks(const program::QuantiseOf<Numbers>& op, bool transposed) {
  const Numbers &out = transposed ? op.out_transposed : op.out, &scale = transposed ? op.scale_transposed : op.scale;
  const std::int64_t rows = transposed ? op.width : op.rows, width = transposed ? op.rows : op.width;
  if (!out.present()) return;
  for (std::int64_t i = 0; i < scale.count(); ++i) scale[i] = 0x1p-127;
  const BlockScales places(rows, width);
  const auto in = [&](std::int64_t r, std::int64_t c) {
    return double{op.in[transposed ? c * op.width + r : r * op.width + c]};
  };
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t block = 0; block < width / 32; ++block) {
      double largest = 0;
      for (std::int64_t c = 32 * block; c < 32 * (block + 1); ++c) largest = std::max(largest, std::abs(in(r, c)));
      const double s = scale_of(largest, out.type());
      scale[places(r, block)] = s;
      for (std::int64_t c = 32 * block; c < 32 * (block + 1); ++c) out[r * width + c] = in(r, c) / s;
    }
  }
}

}  // namespace harness::test
