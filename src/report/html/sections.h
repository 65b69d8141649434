#pragma once

#include "analysis/findings.h"
#include "report/html/document.h"
#include "store/result.h"

namespace harness::html {

// The sections of a report. One without data says so in a line, or has no pieces and is left out.

Section before_after_section(const Result& result, const Findings& findings);
Section cost_section(const Findings& findings);                              // none without a price
Section changes_section(const Result& result, const Findings& findings);     // tornado; what could not be compared
Section steps_section(const Result& result, const Findings& findings);       // ladder
Section scaling_section(const Result& result, const Findings& findings);     // where ranks was swept
Section bottleneck_section(const Result& result, const Findings& findings);  // breakdown, waterfalls
Section timeline_section(const Result& result, const Findings& findings);
Section stragglers_section(const Result& result, const Findings& findings);
Section nccl_section(const Result& result);  // none where NCCL had no part
Section warnings_section(const Result& result, const Findings& findings);
Section environment_section(const Result& result, const Findings& findings);
Section configuration_section(const Result& result);
Section reproduce_section(const Result& result);

}  // namespace harness::html
