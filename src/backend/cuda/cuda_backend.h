#pragma once

#include "backend/backend.h"

namespace harness::cuda {

/// NVIDIA GPUs: cuBLASLt for matrix products, cuDNN for fused attention, NCCL for communication, own kernels for the
/// rest.
const backend::Backend& cuda_backend();

}  // namespace harness::cuda
