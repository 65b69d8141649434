#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/text.h"
#include "program/program.h"

namespace harness::program {

// Placement of the buffers of a Program that a backend runs, and the host's access to them.

/// Fills the input buffers of one rank before a step. Values depend on (seed, step, global sample number) alone, so
/// every layout trains on the same batch.
class InputSource {
 public:
  virtual ~InputSource() = default;
  /// `buffer` is the name of an input buffer; `to` is its whole extent.
  virtual void fill(const std::string& buffer, std::int64_t step, std::span<std::byte> to) const = 0;
  /// Whether time spent waiting for fill() counts as step time, as for a data loader. If so, a backend fills a step's
  /// inputs only once it times that step or an earlier one.
  virtual bool is_part_of_step() const { return false; }
  /// Whether the step itself loads its batch: then a backend calls fill() once the step before is complete.
  virtual bool is_loaded_by_step() const { return false; }
};

/// For programs that have no input buffers.
class NoInputs : public InputSource {
 public:
  void fill(const std::string& buffer, std::int64_t /*step*/, std::span<std::byte> /*to*/) const override {
    fail("input buffer {} has no source", buffer);
  }
};

/// Host access to the memory of one rank's Program between steps. The spans are as long as the view, in bytes.
class BufferAccess {
 public:
  virtual ~BufferAccess() = default;
  virtual void read(const View& view, std::span<std::byte> to) = 0;
  virtual void write(const View& view, std::span<const std::byte> from) = 0;
};

/// Place of each buffer of a Program in one allocation. Transient buffers share memory when every access of one
/// comes before every access of the other, by stream order and waits.
struct Arena {
  static constexpr std::int64_t alignment_bytes = 256;
  std::vector<std::int64_t> offset_bytes;  // per buffer
  std::int64_t bytes = 0;                  // the whole allocation
  std::int64_t persistent_bytes = 0;       // weights, moments, inputs, outputs
  std::int64_t transient_bytes = 0;        // the shared part
};
Arena plan_arena(const Program& program);

/// Operations [begin, end) of a step. The operations after them repeat them on other buffers; from `tail` on the step
/// winds down.
struct RepeatedPart {
  OperationId begin = 0, end = 0, tail = 0;
};
/// Returns Arena::bytes of a step that has this part `times` more times. Returns nothing if the following operations do
/// not repeat it, or if one of its buffers is used in the tail.
std::optional<std::int64_t> arena_bytes(const Program& program, const RepeatedPart& part, int times);

}  // namespace harness::program
