#pragma once

#include <string>

#include "backend/backend.h"

namespace harness::backends {

/// The file of a backend could not be loaded, so nothing is known of its device. Not the same as having no device.
class NotLoaded : public Error {
 public:
  using Error::Error;
};

/// A backend that is a file of its own beside this program (libharness_NAME.so), because the libraries it needs take
/// long to load and are not everywhere; loaded when first asked for. Throws NotLoaded with the name of the missing
/// library, the folders in which the loader looked, and the advice.
const backend::Backend& load_backend(const std::string& name, const std::string& advice);

/// The meaning of the dynamic loader's words: "libnccl.so.2 was not found; …". `words`: dlerror() of loading `module`;
/// `library_path`: LD_LIBRARY_PATH, colons between the folders. Pure.
std::string explain_loader(const std::string& words, const std::string& module, const std::string& library_path);

/// The backend of this kind, or an Error that says what is missing and how to get it (NotLoaded: a library). Loads a
/// backend that is a file of its own when it is first asked for.
const backend::Backend& get(config::BackendKind kind);

/// How each backend was built, a line per backend: "backend cuda: built with CUDA 13.0.88 for sm_80, sm_90, …,
/// with fused attention".
std::string build_description();

}  // namespace harness::backends
