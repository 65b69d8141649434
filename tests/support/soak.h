#pragma once

#include <cstdlib>

namespace harness::test {

/// Whether tests shall repeat as often as `make soak` asks.
inline bool soaking() {
  return std::getenv("HARNESS_SOAK") != nullptr;
}

}  // namespace harness::test
