#pragma once

#include <string>
#include <string_view>

namespace harness::machine {

// What the kernel writes of a port of an InfiniBand or RoCE adapter in /sys/class/infiniband.

/// From a file such as "4: ACTIVE" the word, from "400 Gb/sec (4X NDR)" the rate; NaN if it is none.
std::string state_in(std::string_view text);
double rate_in(std::string_view text);

}  // namespace harness::machine
