#pragma once

#include <string>

#include "backend/backend.h"

namespace harness::backend {

/// A backend that is a file of its own beside this program (libharness_NAME.so), because the libraries it needs take
/// long to load and are not everywhere; loaded when first asked for. Throws Error with the loader's words and what to
/// do.
const Backend& load_backend(const std::string& name, const std::string& advice);

}  // namespace harness::backend
