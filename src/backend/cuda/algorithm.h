#pragma once

#include <string>
#include <vector>

namespace harness::cuda {

/// Algorithms that differ from this one (the bytes of ProductChoice::algorithm) in its tile, its thread block cluster
/// or its order of blocks alone. The library proposes those that its model takes for the best; measured ones may be
/// better. Whether one runs, Blas::runnable() tells. At most `at_most`, spread over the tiles if there are more.
std::vector<std::string> variants_of(const std::string& algorithm, int at_most);

}  // namespace harness::cuda
