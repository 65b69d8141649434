#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "program/view.h"

namespace harness::program {

// How the host reaches the buffers of a Program that a backend runs.

/// Fills the input buffers of one rank before a step. Values depend on (seed, step, global sample number) alone, so
/// every layout trains on the same batch.
class InputSource {
 public:
  virtual ~InputSource() = default;
  /// `buffer` is the name of an input buffer; `to` is its whole extent.
  virtual void fill(const std::string& buffer, std::int64_t step, std::span<std::byte> to) const = 0;
};

/// The memory of one rank's Program between steps. The spans are as long as the view, in bytes.
class BufferAccess {
 public:
  virtual ~BufferAccess() = default;
  virtual void read(const View& view, std::span<std::byte> to) = 0;
  virtual void write(const View& view, std::span<const std::byte> from) = 0;
};

}  // namespace harness::program
