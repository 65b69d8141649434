#pragma once

#include <optional>

#include "analysis/level_course.h"
#include "analysis/summary.h"
#include "report/document.h"

namespace harness::page {

/// The machine over the sweep: each block without its case's effect, the level that the model found, where it jumped,
/// and what other processes did. Nothing without a level.
std::optional<report::Figure> course_chart(const store::Result& result, const analysis::Summary& summary,
                                           const analysis::LevelCourse& course);

}  // namespace harness::page
