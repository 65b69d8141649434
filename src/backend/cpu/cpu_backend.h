#pragma once

#include "backend/backend.h"

namespace harness::cpu {

/// Real arithmetic (oneDNN and own kernels, one OpenMP pool) and real collectives (Gloo over TCP).
const backend::Backend& cpu_backend();

}  // namespace harness::cpu
