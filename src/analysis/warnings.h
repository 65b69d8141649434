#pragma once

#include <string>
#include <vector>

#include "analysis/level_course.h"
#include "analysis/summary.h"

namespace harness::analysis {

/// Warnings that a reader should know before believing a result, each with a remedy. The warnings of `summary` itself
/// are not read.
std::vector<std::string> find_warnings(const store::Result& result, const Summary& summary);

/// Warnings about other processes that kept the machine busy while the sweep ran, and about changes of its speed, each
/// with a remedy. The warnings of `summary` itself are not read.
std::vector<std::string> machine_warnings(const store::Result& result, const Summary& summary,
                                          const LevelCourse& course);

/// Warnings about the objections of the level model's guards, each with a remedy; nothing where no level was estimated.
std::vector<std::string> level_warnings(const store::Result& result, const Summary& summary);

}  // namespace harness::analysis
