#pragma once

#include <string>

namespace harness::doctor {

/// Who reads an environment variable that looks like NCCL's and how a sweep sets it, in one line with its end. For a
/// name that nobody reads: the one that was probably meant. Throws Error for a name that has nothing to do with NCCL.
std::string explain(const std::string& name);

}  // namespace harness::doctor
