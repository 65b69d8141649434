#pragma once

#include "analysis/findings.h"
#include "report/document.h"
#include "store/result.h"

namespace harness::page {

/// The whole report. `result` with its timeline and the seconds of ranks, as far as they are wanted.
report::Document make_report(const store::Result& result, const analysis::Findings& findings);
report::Document make_report(const store::Result& result);

}  // namespace harness::page
