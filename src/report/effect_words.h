#pragma once

#include <string>

#include "analysis/summary.h"
#include "report/table.h"

namespace harness::report {

/// "-12.0 %", the change that a ratio of times stands for; "" for NaN.
std::string change_words(double ratio);
/// "[-12.9 %, -11.1 %]", the ends of an interval of a ratio; "" for NaN. Two or three rounds give ends that say
/// nothing: one end beyond +1000 % or -90 % is cut, if the other is not beyond it too.
std::string interval_words(double low, double high);
/// The same of a case's effect; "" where there is none.
std::string change_of(const analysis::CaseSummary& row);
std::string interval_of(const analysis::CaseSummary& row);

/// change_words() in a table, whose rows sort by it as it is printed: what looks equal keeps its order.
Cell change_cell(double ratio);
/// How a reader takes a verdict; a case that failed or was faster than it can be is bad.
Tone tone_of(analysis::Verdict verdict);
Tone tone_of(const analysis::Judgement& judgement);

/// The heading of a column of intervals: "95 % interval".
std::string interval_heading(double confidence = analysis::confidence);

}  // namespace harness::report
