#include "backends/backends.h"

#ifdef HARNESS_HAS_CPU_BACKEND
#include "backend/cpu/cpu_backend.h"
#endif
#ifdef HARNESS_HAS_CUDA_BACKEND
#include "backends/load.h"
#endif

namespace harness::backends {

const backend::Backend& get(config::BackendKind kind) {
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
      fail("the cuda backend is not in this build; {}, or use `backend: cpu`", HARNESS_CUDA_REMEDY);
#endif
    case config::BackendKind::sim:
      fail("backend sim computes nothing, so no worker runs it: `harness plan --backend sim` predicts the steps");
  }
  fail("unknown backend number {}", static_cast<int>(kind));
}

std::string build_description() {
#ifdef HARNESS_HAS_CPU_BACKEND
  const std::string cpu = "built";
#else
  const std::string cpu = "left out";
#endif
#ifdef HARNESS_HAS_CUDA_BACKEND
  const std::string cuda =
      "built with CUDA " HARNESS_CUDA_VERSION " for " HARNESS_CUDA_ARCHITECTURES ", " HARNESS_CUDA_ATTENTION;
#else
  const std::string cuda = "left out, " HARNESS_CUDA_MISSING;
#endif
  return fmt::format("backend cpu: {}\nbackend cuda: {}", cpu, cuda);
}

}  // namespace harness::backends
