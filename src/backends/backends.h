#pragma once

#include "backend/backend.h"

namespace harness::backends {

/// The backend of this kind, or an Error that says what is missing and how to get it (NotLoaded of backends/load.h: a
/// library). Loads a backend that is a file of its own when it is first asked for.
const backend::Backend& get(config::BackendKind kind);

}  // namespace harness::backends
