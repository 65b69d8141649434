#pragma once

#include <string>
#include <vector>

#include "evidence/answer.h"
#include "traces/read.h"

namespace harness::traces {

/// Says what one job's traces hold, or those of before and after a change, for people: at most fifteen lines of 80
/// columns. Texts hold names of the file as they are: the writer escapes them.
evidence::Answer answer_of(const std::vector<Report>& reports);

/// Names what is wrong in a report, the most telling first, each with what to do.
std::vector<std::string> problems_of(const Report& report);

/// The reports as a JSON object: `traces` with the windows of docs/read.md, `mean`, `waiting`, `late`, `bandwidths`
/// and, of two reports, the same of the earlier one in `before`. ASCII.
std::string json_of(const std::vector<Report>& reports);

}  // namespace harness::traces
