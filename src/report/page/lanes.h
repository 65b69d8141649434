#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "report/document.h"

namespace harness::page {

/// The colours of a timeline.
enum class OperationKind : std::uint8_t {
  matrix_product,
  attention,
  other_computation,
  optimizer,
  tensor,
  data,
  pipeline,
  closing,  // the all-reduce that ends a step
  waiting,
  everyone,  // communication of all ranks, or of a group without a name
  copy,
};

/// An operation of a step on the timeline of its rank.
struct DrawnOperation {
  std::int64_t rank = 0;
  std::string track;  // "compute", which comes first, or a stream
  OperationKind kind = OperationKind::other_computation;
  double start_s = 0, end_s = 0;
  double waited_s = NAN;  // at its beginning, for other ranks; NaN: not known
};

/// The indices of up to eight of `all` (ranks of a timeline, marks of an axis), evenly from the first to the last.
std::vector<std::size_t> evenly_chosen(std::size_t all);

/// One step: a lane for each track of each rank in `operations`, coloured by kind. A lane is drawn in 2000 cells, each
/// in the colour of what took most of it, so that a step of a hundred thousand operations stays small. length_s: what
/// the width stands for, so that two charts can be compared. The caption of the figure says how to read a lane.
report::Figure lanes_chart(const std::vector<DrawnOperation>& operations, double step_s, double length_s,
                           const std::string& id, const std::string& title);

}  // namespace harness::page
