#include "backend/backend.h"

namespace harness::backend {

Tuning Backend::tune(const ExecutableRequest& /*request*/) const {
  return {};
}

program::FusedSet declared_fused(config::BackendKind kind) {
  // The cpu backend computes these forms in one kernel. A GELU next to a product does not pay there: oneDNN writes
  // either gelu(x) or x, and the backward pass needs both; nor does a bias gradient, which no oneDNN product yields.
  if (kind == config::BackendKind::cpu)
    return program::Fused::matmul_bias | program::Fused::matmul_add | program::Fused::cross_entropy;
  return program::all_fused;
}

}  // namespace harness::backend
