#pragma once

namespace harness::page {

/// The page's one style sheet.
extern const char* const style;

}  // namespace harness::page
