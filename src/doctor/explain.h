#pragma once

#include <string>

namespace harness::doctor {

/// What an environment variable of NCCL does, in lines for a terminal: when NCCL reads it, its default, how one sees
/// that it took effect, what goes wrong with it. Of a name that NCCL does not read, what was probably meant. Throws
/// Error for a name that is none of NCCL's.
std::string explain(const std::string& name);

}  // namespace harness::doctor
