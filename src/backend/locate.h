#pragma once

#include <cstddef>

#include "backend/tensor.h"
#include "program/arena.h"
#include "program/program.h"

namespace harness::backend {

/// Where a view lies in the memory that begins at `base`, on the rank at these coordinates. Throws Error if it reaches
/// outside its buffer.
inline Tensor locate(const program::View& view, const program::Program& program, const program::Arena& arena,
                     std::byte* base, const program::Coordinates& at) {
  const program::View v = view.on(at);
  const program::Buffer& b = program.buffers.at(v.buffer);
  if (v.offset < 0 || v.count < 0 || v.offset + v.count > b.count) fail("a view reaches outside buffer {}", b.name);
  return {base + arena.offset_bytes[v.buffer] + v.offset * program::size_of(b.type), b.type, v.count};
}

}  // namespace harness::backend
