#pragma once

#include <vector>

#include "program/operation.h"

namespace harness::program {

/// By operation of a list, not 0 for a computation beside which one of another stream may run, because neither is
/// complete when the other begins: the two may have to share the device. Follows stream order and waits alone.
std::vector<char> computes_beside_another(const std::vector<Operation>& list, std::size_t streams);

}  // namespace harness::program
