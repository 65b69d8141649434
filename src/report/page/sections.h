#pragma once

#include "analysis/findings.h"
#include "report/document.h"
#include "store/result.h"

namespace harness::html {

// The sections of the page that draw; the others are those of report/sections.h. One without data says so in a line, or
// has no pieces and is left out.

Section changes_section(const Result& result, const Findings& findings);  // tornado; what could not be compared
Section steps_section(const Result& result, const Findings& findings);    // ladder
Section scaling_section(const Result& result, const Findings& findings);  // where ranks was swept
Section losses_section(const Result& result, const Findings& findings);   // waterfalls, bottlenecks, breakdowns
Section timeline_section(const Result& result, const Findings& findings);
Section lateness_section(const Result& result, const Findings& findings);  // stragglers, with the heat map

}  // namespace harness::html
