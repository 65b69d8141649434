#pragma once

#include <string>

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
report::Document make_report(const store::Result& result);

}  // namespace harness::page
