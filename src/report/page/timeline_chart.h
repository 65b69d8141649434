#pragma once

#include <optional>
#include <string>

#include "report/document.h"
#include "store/result.h"

namespace harness::page {

/// One profiled step of a case: a lane for each track of up to eight ranks, on one clock (analysis::drawn_step),
/// operations coloured by kind. A lane is drawn in 2000 cells, each in the colour of what took most of it, so that a
/// step of a hundred thousand operations stays small. length_s: what the width stands for, so that two can be compared.
/// Nothing if the file has no timeline of the case.
std::optional<report::Figure> timeline_chart(const store::Result& result, int case_index, const std::string& id,
                                             double length_s);

/// How long the profiled step took, by the end of its last operation; 0 if the file has none.
double timeline_length(const store::Result& result, int case_index);

}  // namespace harness::page
