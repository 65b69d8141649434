#pragma once

#include <string>
#include <vector>

namespace harness::cuda {

/// Algorithms that differ from this one (the bytes of ProductChoice::algorithm) in one thing: its thread block cluster,
/// its order of blocks, its custom option (what the library calls what fits no other word) or its tile, of the tiles
/// that large products are seen to use. The library proposes those that its model takes for the best; measured ones may
/// be better. Whether one runs, Blas::runnable() tells. At most `at_most`, tiles last.
std::vector<std::string> variants_of(const std::string& algorithm, int at_most);

}  // namespace harness::cuda
