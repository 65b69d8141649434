#pragma once

#include <string>

#include "store/imprint.h"

namespace harness::store {

/// Of a file whose state is running, what can be said without waiting: "running: OWNER" or "killed: OWNER …" where this
/// kernel knows the process, else "unfinished" and when the owner last gave a sign of life, by his own clock.
std::string standing_of(const Imprint& imprint);

/// Of a path where there is no file: "; in preparation: OWNER" if a sweep has claimed it, else "".
std::string preparation_of(const std::string& path);

}  // namespace harness::store
