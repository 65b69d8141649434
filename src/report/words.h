#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/cases.h"
#include "analysis/summary.h"
#include "analysis/verdict.h"
#include "base/text.h"
#include "base/units.h"
#include "report/document.h"
#include "store/result.h"

// Words and numbers for people: names of cases, changes with their intervals, suitable units.

namespace harness::report {

using analysis::short_name;

/// The index of the case with this name or short name. Throws Error if there is none.
std::size_t find_name(const std::vector<std::string>& names, const std::string& name);
std::int32_t find_case(const store::Result& result, const std::string& name);

/// The setting that a case changes, without its size: "nccl_algo=tree"; for a combination, all of it.
std::string setting_of(const store::Result& result, const analysis::CaseSummary& row);

/// The changes of a grid grouped by setting_of(); groups and changes keep the order of the file.
using ChangesOfSetting = std::pair<std::string, std::vector<const analysis::CaseSummary*>>;
std::vector<ChangesOfSetting> changes_by_setting(const store::Result& result, const analysis::Summary& summary);

/// The operation's part in a step of the configured model: "qkv, forward"; "" if it has none.
std::string uses_of(const store::Result& result, const analysis::CaseSummary& row);

/// The label in a drawing: the operation's part in the step ("qkv, forward") if the case's name is a size, else the
/// name.
std::string label_of(const store::Result& result, const analysis::CaseSummary& row);

/// "2 slower, 1 faster": how many rows have each of these outcomes, without those that none has.
template <class Rows, class OutcomeOf>
std::string counted(const Rows& rows, std::initializer_list<std::string_view> outcomes, OutcomeOf outcome_of) {
  std::vector<std::string> parts;
  for (const std::string_view outcome : outcomes) {
    const auto n = std::ranges::count(rows, outcome, outcome_of);
    if (n > 0) parts.push_back(fmt::format("{} {}", n, outcome));
  }
  return join(parts, ", ");
}

/// A share that may be unknown: "41.3 %", or "".
std::string share_words(const std::optional<double>& share);
/// The change that a ratio of times expresses, "-12.0 %"; "" for NaN.
std::string change_words(double ratio);
/// The interval of a ratio, "[-12.9 %, -11.1 %]"; "" for NaN. Two or three rounds give meaningless ends: one beyond
/// +1000 % becomes "over +1000 %".
std::string interval_words(double low, double high);
/// The words for an effect; "" if there is none.
std::string change_of(const std::optional<analysis::Effect>& effect);
std::string interval_of(const std::optional<analysis::Effect>& effect);

/// The tone of a verdict; a case that failed or was faster than physically possible is bad.
Tone tone_of(analysis::Verdict verdict);
Tone tone_of(const analysis::Judgement& judgement);

/// The heading of a column of intervals: "95 % interval".
std::string interval_heading(double confidence);

inline constexpr const char* too_close = "too close to call";
/// The name of the verdict. A prediction has none: the sign of its change tells, unless it is too_close.
const char* outcome_of(const analysis::Judgement& judgement, double ratio);

/// A change, as a headline reports it.
struct KnownChange {
  std::string name;
  std::string outcome;  // outcome_of()
  double ratio = 1, low = NAN,
         high = NAN;  // of its time relative to the baseline's; low and high are NaN without an interval
};

/// "12.3 % less time [10.1 %, 14.4 %]"; per: appended to "time", as from per_what().
std::string how_much(const KnownChange& change, const std::string& per);

/// One sentence: the fastest change and the outcomes of the others, or that none is proven. "" if no change has an
/// outcome. per: as from per_what().
std::string what_moved(std::vector<KnownChange> changes, double smallest_effect, const std::string& per,
                       bool predicted = false);

/// " Another training, per token: global_batch_size=64 12.3 % less time [10.1 %, 14.4 %], 1 unresolved.": names the
/// faster ones and counts the others; "" if none has an outcome.
std::string other_trainings_words(std::vector<KnownChange> changes);

/// A unit that suits the given values; prints numbers with four digits.
struct Scale {
  std::string unit = {};
  double factor = 1;                      // in SI units
  bool fixed = false;                     // the same unit at every size: small values have more decimals
  std::string print(double value) const;  // "" for NaN
};
/// As nccl-tests prints bandwidths, so that digits can be compared by position.
inline const Scale gigabytes_per_s{"GB/s", 1e9, true};
Scale scale_of_seconds(std::span<const double> values);
Scale scale_of_flops(std::span<const double> values);
Scale scale_of_bytes(std::span<const double> values);

}  // namespace harness::report
