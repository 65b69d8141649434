#include "backend/backend.h"

#ifdef HARNESS_HAS_CPU_BACKEND
#include "backend/cpu/cpu_backend.h"
#endif
#ifdef HARNESS_HAS_CUDA_BACKEND
#include "backend/load.h"
#endif

namespace harness::backend {

Tuning Backend::tune(const ExecutableRequest& /*request*/) const {
  return {};
}

const Backend& backend(config::BackendKind kind) {
  switch (kind) {
    case config::BackendKind::cpu:
#ifdef HARNESS_HAS_CPU_BACKEND
      return cpu::cpu_backend();
#else
      fail(
          "the cpu backend is not in this build: it needs oneDNN, Gloo and OpenMP (Debian/Ubuntu: apt-get install "
          "libdnnl-dev libgloo-dev); install them and build again");
#endif
    case config::BackendKind::cuda:
#ifdef HARNESS_HAS_CUDA_BACKEND
      return load_backend(
          "cuda",
          "It needs the libraries of the CUDA Toolkit that it was built with, cuDNN and NCCL: put their folders into "
          "LD_LIBRARY_PATH (or `module load` them); scripts/cuda_libraries.sh prints those of a PyTorch or a toolkit");
#else
      fail("the cuda backend is not in this build, which missed {}; install it and build again, or use `backend: cpu`",
           HARNESS_CUDA_MISSING);
#endif
  }
  fail("unknown backend number {}", static_cast<int>(kind));
}

program::FusedSet declared_fused(config::BackendKind kind) {
  // The cpu backend computes these forms in one kernel. A GELU next to a product does not pay there: oneDNN writes
  // either gelu(x) or x, and the backward pass needs both; nor does a bias gradient, which no oneDNN product yields.
  if (kind == config::BackendKind::cpu)
    return program::Fused::matmul_bias | program::Fused::matmul_add | program::Fused::cross_entropy;
  return program::all_fused;
}

}  // namespace harness::backend
