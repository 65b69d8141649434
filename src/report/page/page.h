#pragma once

#include <optional>
#include <string>

#include "analysis/breakdown.h"
#include "analysis/findings.h"
#include "report/document.h"
#include "store/result.h"

namespace harness::page {

/// One file that needs nothing else: no network, no script. Well-formed XML too, so that it can be checked strictly.
std::string page(const report::Document& document);

/// The page's one style sheet.
extern const char* const style;

/// The whole report. `result` with its timeline and the seconds of ranks, as far as they are wanted.
report::Document make_report(const store::Result& result, const analysis::Findings& findings);

// The charts of a page, a source file each. An optional one is absent where there is nothing to draw.

/// Every change that was compared, the fastest first: its effect on the step time with its interval, over the band of
/// effects too small to matter. Nothing if none was compared.
std::optional<report::Figure> tornado(const store::Result& result, const analysis::Summary& summary);

/// Tokens per second and efficiency per rank against the number of ranks, and what grew. No pieces unless `ranks` was
/// swept and two sizes were measured.
report::Section scaling_section(const store::Result& result, const analysis::Findings& findings);

/// Bus bandwidth of collectives against the size of the message, with what the links allow: a line per collective,
/// where settings are compared at several sizes a line per setting. Nothing where no collective was measured on its
/// own.
std::optional<report::Figure> bandwidth_chart(const store::Result& result, const analysis::Summary& summary);

/// From 100 % of the peak down to the measured MFU.
report::Figure waterfall_chart(const analysis::Waterfall& waterfall, const std::string& id,
                               const std::string& case_name);

/// One profiled step of a case: lanes_chart() of up to eight ranks on one clock (analysis::drawn_step). Nothing if the
/// file has no timeline of the case.
std::optional<report::Figure> timeline_chart(const store::Result& result, int case_index, const std::string& id,
                                             double length_s);

/// How long the profiled step took, by the end of its last operation; 0 if the file has none.
double timeline_length(const store::Result& result, int case_index);

/// Ranks by steps: how far each was behind the median rank of its step.
report::Figure heat_map(const analysis::HeatMap& heat, const std::string& where);

}  // namespace harness::page
