#pragma once

namespace harness::html {

/// The page's one style sheet.
extern const char* const style;

}  // namespace harness::html
