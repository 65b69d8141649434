#pragma once

#include <functional>

#include "backend/backend.h"

namespace harness::cpu {

/// Compiles compute operations into calls on fixed addresses. It allocates scratch when it is made and generates code
/// for products when it compiles, so the calls allocate nothing. Make the calls one at a time, on one thread, whose
/// OpenMP threads they use. The Compiler must outlive them.
using Compiler = std::function<std::function<void()>(const program::Operation& operation)>;
Compiler make_compiler(const backend::ExecutableRequest& request,
                       std::function<backend::Tensor(const program::View&)> tensor);

/// Real arithmetic (oneDNN and own kernels, one OpenMP pool) and real collectives (Gloo over TCP).
const backend::Backend& cpu_backend();

}  // namespace harness::cpu
