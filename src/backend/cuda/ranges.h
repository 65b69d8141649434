#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "program/operation.h"

namespace harness::cuda {

// Names for Nsight Systems: the host's time of a step as nested NVTX ranges of the domain "harness", step > phase with
// its micro-batch > layer. They cost next to nothing unless a profiler listens. In a step that is one graph launch they
// show the capture; its kernels lie under the range of the step alone.

/// How the ranges change before one operation.
struct RangeChange {
  int close = 0;                  // this many, innermost first
  std::vector<std::string> open;  // then these, outermost first
  bool operator==(const RangeChange&) const = default;
};
struct RangePlan {
  std::vector<RangeChange> before;  // one per operation
  int close_at_end = 0;
};
/// Walks the operations in the order in which they are issued. A range stays open as long as the operations belong to
/// it; where those of another stream stand in between (a gradient bucket within the backward pass) it is opened again
/// after them, so that ranges always nest.
RangePlan plan_ranges(std::span<const program::Operation> step);

/// Opens and closes planned ranges on the calling thread. All calls of one walk come from one thread.
class Ranges {
 public:
  explicit Ranges(RangePlan plan) : plan_(std::move(plan)) {}
  Ranges(const Ranges&) = delete;
  Ranges& operator=(const Ranges&) = delete;

  void before(std::size_t operation);
  /// After the last operation.
  void end();

 private:
  RangePlan plan_;
};

/// One range of the same domain for as long as it lives: "connect", "initialize", "replay".
class Range {
 public:
  explicit Range(const char* name);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

}  // namespace harness::cuda
