#pragma once

#include <string>

#include "report/document.h"

namespace harness::html {

/// One file that needs nothing else: no network, no script. Well-formed XML too, so that it can be checked strictly.
std::string page(const Document& document);

}  // namespace harness::html
