#pragma once

#include <string>

#include "backend/backend.h"

namespace harness::backends {

/// The file of a backend could not be loaded, so nothing is known of its device. Not the same as having no device.
class NotLoaded : public Error {
 public:
  using Error::Error;
};

/// The backend of this kind, or an Error that says what is missing and how to get it (NotLoaded: a library). That of
/// cuda is a file of its own beside this program (libharness_cuda.so), because the libraries it needs take long to load
/// and are not everywhere; it is loaded when first asked for.
const backend::Backend& get(config::BackendKind kind);

/// How each backend was built, a line per backend: "backend cuda: built with CUDA 13.0.88 for sm_80, sm_90, …,
/// with fused attention".
std::string build_description();

}  // namespace harness::backends
