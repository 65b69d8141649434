#pragma once

#include <string>

#include "backend/backend.h"

namespace harness::backends {

/// The backend of this kind, or an Error that says what is missing and how to get it (NotLoaded of backends/load.h: a
/// library). Loads a backend that is a file of its own when it is first asked for.
const backend::Backend& get(config::BackendKind kind);

/// How each backend was built, a line per backend: "backend cuda: built with CUDA 13.0.88 for sm_75, sm_80, …,
/// with fused attention".
std::string build_description();

}  // namespace harness::backends
