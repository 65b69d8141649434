#pragma once

#include <string>
#include <vector>

#include "analysis/level_course.h"
#include "analysis/summary.h"

namespace harness::analysis {

/// What else kept the machine busy while the sweep ran, and how its speed changed, each with a remedy. The warnings of
/// `summary` itself are not read.
std::vector<std::string> machine_warnings(const store::Result& result, const Summary& summary,
                                          const LevelCourse& course);

}  // namespace harness::analysis
