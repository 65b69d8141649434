#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/summary.h"
#include "analysis/verdict.h"
#include "base/units.h"
#include "report/document.h"
#include "store/result.h"

// Words and numbers as people read them: names of cases, changes with their intervals, units that suit.

namespace harness::report {

/// The name with short words for its long parts: "TP2 PP2" for a layout, "NCCL_ALGO=Ring" for env={NCCL_ALGO: Ring},
/// "overlap_grad_reduce off" for overlap_grad_reduce=false, each also where several changes are joined by " + ".
std::string short_name(const std::string& case_name);

/// The place of the case that has this name or this short name. Throws Error where there is none.
std::size_t find_name(const std::vector<std::string>& names, const std::string& name);
std::int32_t find_case(const store::Result& result, const std::string& name);

/// The setting that a case changes, at whatever size: "nccl_algo=tree", of a combination all of it.
std::string setting_of(const store::Result& result, const analysis::CaseSummary& row);

/// The changes of a grid by setting_of(), both in the order of the file.
using ChangesOfSetting = std::pair<std::string, std::vector<const analysis::CaseSummary*>>;
std::vector<ChangesOfSetting> changes_by_setting(const store::Result& result, const analysis::Summary& summary);

/// For a drawing: "qkv, forward" where that stands for the case's name, else the name.
std::string label_of(const store::Result& result, const analysis::CaseSummary& row);

/// "2 slower, 1 faster"; what does not occur is left out.
std::string counted(const std::vector<std::pair<std::size_t, const char*>>& counts);

/// "-12.0 %", the change that a ratio of times stands for; "" for NaN.
std::string change_words(double ratio);
/// "[-12.9 %, -11.1 %]", the ends of an interval of a ratio; "" for NaN. Two or three rounds give ends that say
/// nothing: one beyond +1000 % is "over +1000 %".
std::string interval_words(double low, double high);
/// The words for an effect; "" where there is none.
std::string change_of(const std::optional<analysis::Effect>& effect);
std::string interval_of(const std::optional<analysis::Effect>& effect);

/// How a reader takes a verdict; a case that failed or was faster than it can be is bad.
Tone tone_of(analysis::Verdict verdict);
Tone tone_of(const analysis::Judgement& judgement);

/// The heading of a column of intervals: "95 % interval".
std::string interval_heading(double confidence);

inline constexpr const char* too_close = "too close to call";

/// A change as a headline knows it.
struct KnownChange {
  std::string name;
  std::string outcome;                      // the name of its verdict; of a prediction "faster", "slower" or too_close
  double ratio = 1, low = NAN, high = NAN;  // of its time to the baseline's; low and high NaN without an interval
};

/// "12.3 % less time [10.1 %, 14.4 %]"; per: behind "time", as per_what() has it.
std::string how_much(const KnownChange& change, const std::string& per);
/// "2 others faster, 1 slower": all that have an outcome but one of the outcome `told`, which the sentence is about.
std::string counted_outcomes(const std::vector<KnownChange>& changes, std::string_view told = "");

/// Says what moved, in a sentence: the fastest change and how the others came out, or that none is proven. "" where no
/// change has an outcome. per: as per_what() has it.
std::string what_moved(std::vector<KnownChange> changes, double smallest_effect, const std::string& per,
                       bool predicted = false);

/// A unit that suits these values, and how to print one in it with four digits.
struct Scale {
  std::string unit = {};
  double factor = 1;                      // of the SI unit
  std::string print(double value) const;  // "" for NaN
};
Scale scale_of_seconds(std::span<const double> values);
Scale scale_of_flops(std::span<const double> values);
Scale scale_of_bytes(std::span<const double> values);

}  // namespace harness::report
