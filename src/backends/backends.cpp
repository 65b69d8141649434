#include "backends/backends.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#ifdef HARNESS_HAS_CPU_BACKEND
#include "backend/cpu/cpu_backend.h"
#endif

namespace harness::backends {

#ifdef HARNESS_HAS_CUDA_BACKEND
namespace {

// Explains the dynamic loader's error for `module`: "the library libnccl.so.2 was not found in …".
std::string explain_loader(const std::string& words, const std::string& module) {
  const std::size_t end = words.find(": cannot open shared object file");
  if (end == std::string::npos) return words;
  const std::string missing = words.substr(0, end);
  if (missing == module) return fmt::format("its file {} is missing", module);
  const char* path = std::getenv("LD_LIBRARY_PATH");
  return fmt::format(
      "the library {} was not found in LD_LIBRARY_PATH ({}), in the path within {} or in the system's folders", missing,
      path == nullptr || *path == '\0' ? "which is not set" : path, module);
}

const backend::Backend& load_backend() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::string module = program.parent_path() / "libharness_cuda.so";
  const auto refuse = [&](const std::string& why) {
    throw NotLoaded(fmt::format(
        "the cuda backend could not be loaded: {}. It needs the libraries of the CUDA Toolkit that it was built with, "
        "cuDNN and NCCL: put their folders into LD_LIBRARY_PATH (or `module load` them); scripts/cuda_libraries.sh "
        "prints those of a PyTorch or a toolkit",
        why));
  };
  // Never closed: its registrations with its libraries last as long as the process.
  void* library = ::dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) refuse(explain_loader(::dlerror(), module));
  using Get = const backend::Backend* (*)();
  const auto get = reinterpret_cast<Get>(::dlsym(library, "harness_cuda_backend"));
  if (get == nullptr) refuse(fmt::format("{} is not of this program: {}", module, ::dlerror()));
  return *get();
}

}  // namespace
#endif

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
    case config::BackendKind::cuda: {
#ifdef HARNESS_HAS_CUDA_BACKEND
      static const backend::Backend& loaded = load_backend();
      return loaded;
#else
      fail("the cuda backend is not in this build; {}, or use `backend: cpu`", HARNESS_CUDA_REMEDY);
#endif
    }
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
