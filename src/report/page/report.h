#pragma once

#include "analysis/findings.h"
#include "report/document.h"
#include "store/result.h"

namespace harness::html {

/// The whole report. `result` with its timeline and the seconds of ranks, as far as they are wanted.
Document make_report(const Result& result, const Findings& findings);
Document make_report(const Result& result);

}  // namespace harness::html
