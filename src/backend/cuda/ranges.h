#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "program/operation.h"

namespace harness::cuda {

// Names for Nsight Systems: the host's time of a step as nested NVTX ranges of the domain "harness", step > phase with
// its micro-batch > layer. They cost next to nothing unless a profiler listens. In a step that is one graph launch they
// show the capture; its kernels lie under the range of the step alone.

/// The ranges that stand open while an operation is issued, outermost first.
using RangePath = std::vector<std::string>;
RangePath range_path(const program::Label& label);

/// Opens and closes the ranges of a step on the calling thread, as its operations are issued. A range stays open as
/// long as the operations belong to it; where those of another stream stand in between (a gradient bucket within the
/// backward pass) it is opened again after them, so that ranges always nest. All calls of one walk come from one
/// thread.
class Ranges {
 public:
  explicit Ranges(std::span<const program::Operation> step);
  Ranges(const Ranges&) = delete;
  Ranges& operator=(const Ranges&) = delete;

  void before(std::size_t operation) { go_to(paths_.at(operation)); }
  /// After the last operation.
  void end() { go_to({}); }

 private:
  void go_to(const RangePath& path);
  std::vector<RangePath> paths_;  // by operation
  RangePath open_;
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
