#pragma once

#include <string>
#include <vector>

#include "traces/read.h"

namespace harness::traces {

/// "92.5 ms".
std::string ms(double seconds);

/// The beginning of a name of the file, which may hold a path: at most 60 bytes of it.
inline constexpr std::size_t longest_name = 60;
std::string short_name(const std::string& name, std::size_t most = longest_name);

/// The share of the kernels' time in kernels without a class.
double unclassified_share(const Report& report);

/// How to read a report's figures, in whole sentences.
std::vector<std::string> notes_of(const Report& report);

}  // namespace harness::traces
