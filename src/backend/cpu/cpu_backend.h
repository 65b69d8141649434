#pragma once

#include "backend/backend.h"

namespace harness {

/// Real arithmetic (oneDNN and own kernels, one OpenMP pool) and real collectives (Gloo over TCP).
const Backend& cpu_backend();

}  // namespace harness
