#pragma once

#include <cstdint>

#include "program/dtype.h"
#include "program/layout.h"

namespace harness::program {

using BufferId = std::int32_t;
using GroupId = std::int32_t;

/// `count` consecutive elements of one buffer from element `offset` on. The element type is the buffer's.
struct View {
  BufferId buffer = -1;
  std::int64_t offset = 0;
  std::int64_t count = 0;
  bool present() const { return buffer >= 0; }
  View part(std::int64_t first, std::int64_t n) const { return {buffer, offset + first, n}; }
  bool operator==(const View&) const = default;
};

/// A vocabulary-parallel table: this rank holds rows [coordinate * rows, (coordinate + 1) * rows) of the whole.
struct Shard {
  Axis axis = Axis::tensor;
  std::int64_t rows = 0;
};

}  // namespace harness::program
