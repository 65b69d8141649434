#pragma once

#include <string>

#include "backend/backend.h"

namespace harness::backends {

/// The library of a backend could not be loaded, so its devices are unknown. Not the same as having no device.
class NotLoaded : public Error {
 public:
  using Error::Error;
};

/// Returns the backend of this kind. Throws Error that says what is missing and how to get it (NotLoaded: a library).
/// The cuda backend is a separate file beside this program (libharness_cuda.so), because the libraries it needs load
/// slowly and are not installed everywhere. The first call loads it.
const backend::Backend& get(config::BackendKind kind);

/// Describes how each backend was built, one line per backend: "backend cuda: built with CUDA 13.0.88 for sm_80, sm_90,
/// …, with fused attention".
std::string build_description();

}  // namespace harness::backends
