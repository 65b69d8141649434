#pragma once

#include <string>
#include <utility>
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

/// The parts of a step before and after a change, the largest difference first: a label and a text, with the kernel,
/// collective or cause that changed most. Parts that changed by less than 1 % of the step are left out.
std::vector<std::pair<std::string, std::string>> differences_of(const Report& before, const Report& after);

// ---- words that the writers of answers share

/// "92.5 ms".
std::string ms(double seconds);

/// The beginning of a name of the file, which may hold a path: at most 60 bytes of it.
inline constexpr std::size_t longest_name = 60;
std::string short_name(const std::string& name, std::size_t most = longest_name);

/// The share of the kernels' time in kernels without a class.
double unclassified_share(const Report& report);

/// How to read a report's figures, in whole sentences.
std::vector<std::string> notes_of(const Report& report);

}  // namespace harness::traces
