#pragma once

#include <string>
#include <string_view>

namespace harness::nccl {

// The environment variables that NCCL 2.18 to 2.30 reads. It ignores a name it does not know, so a slip in one measures
// nothing.

/// "NCCL_LL_BUFFSIZE": read by strtoll, whatever it says.
bool reads_integer(std::string_view name);
/// NCCL itself reads it. Who reads other names that look like NCCL's, foreign_names.h says.
bool knows(std::string_view name);
/// The known name nearest to it, "" if none is near.
std::string nearest_name(std::string_view name);

}  // namespace harness::nccl
