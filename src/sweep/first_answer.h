#pragma once

#include <string>

#include "store/result.h"

namespace harness::sweep {

/// What a sweep would say after its first `rounds` rounds, for somebody who waits: the cases from the fastest on, with
/// what their change could still be. No verdict. "" if nothing can be said.
std::string first_answer(const store::Result& result, int rounds);

}  // namespace harness::sweep
