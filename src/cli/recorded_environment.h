#pragma once

#include <string>

#include "plan/plan.h"

namespace harness::cli {

/// For `--resume FILE`, which takes `env` from the file: "" if none of it makes the workers run code that lies
/// elsewhere, else a line that says which variables do. Throws Error if there are any, the file is another user's, and
/// the person did not say that the file is to be trusted.
std::string foreign_code_in(const plan::Plan& plan, const std::string& path, bool trusted);

}  // namespace harness::cli
