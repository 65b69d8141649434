#pragma once

#include <string>

#include "report/document.h"

namespace harness::page {

/// One file that needs nothing else: no network, no script. Well-formed XML too, so that it can be checked strictly.
std::string page(const report::Document& document);

/// The page's one style sheet.
extern const char* const style;

}  // namespace harness::page
