#pragma once

#include "analysis/findings.h"
#include "report/document.h"
#include "store/result.h"

namespace harness::page {

// The sections of the page that draw; the others are those of report/sections.h. One without data says so in a line, or
// has no pieces and is left out.

report::Section changes_section(const store::Result& result,
                                const analysis::Findings& findings);  // tornado; what could not be compared
report::Section bandwidth_section(const store::Result& result,
                                  const analysis::Findings& findings);  // of collectives measured on their own
report::Section scaling_section(const store::Result& result,
                                const analysis::Findings& findings);  // where ranks was swept
report::Section losses_section(const store::Result& result,
                               const analysis::Findings& findings);  // waterfalls, bottlenecks, breakdowns
report::Section timeline_section(const store::Result& result, const analysis::Findings& findings);
report::Section lateness_section(const store::Result& result,
                                 const analysis::Findings& findings);  // stragglers, with the heat map

}  // namespace harness::page
