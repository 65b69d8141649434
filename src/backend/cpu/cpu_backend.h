#pragma once

#include <functional>

#include "backend/backend.h"

namespace harness::cpu {

/// Turns compute operations into calls on fixed addresses: products are generated, scratch is allocated when it is
/// made, and the calls allocate nothing. The calls are made one at a time, on one thread, whose OpenMP threads they
/// use. It must outlive them.
using Compiler = std::function<std::function<void()>(const program::Operation& operation)>;
Compiler make_compiler(const backend::ExecutableRequest& request,
                       std::function<backend::Tensor(const program::View&)> tensor);

/// Real arithmetic (oneDNN and own kernels, one OpenMP pool) and real collectives (Gloo over TCP).
const backend::Backend& cpu_backend();

}  // namespace harness::cpu
