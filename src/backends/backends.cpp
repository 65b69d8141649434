#include "backends/backends.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#ifdef HARNESS_HAS_CPU_BACKEND
#include "backend/cpu/cpu_backend.h"
#endif

namespace harness::backends {

std::string explain_loader(const std::string& words, const std::string& module, const std::string& library_path) {
  const std::size_t end = words.find(": cannot open shared object file");
  if (end == std::string::npos) return words;
  const std::string missing = words.substr(0, end);
  if (missing == module) return fmt::format("its file {} is missing", module);
  const std::string folders = library_path.empty() ? "which is not set" : library_path;
  return fmt::format(
      "the library {} was not found in LD_LIBRARY_PATH ({}), in the path within {} or in the system's folders", missing,
      folders, module);
}

const backend::Backend& load_backend(const std::string& name, const std::string& advice) {
  static std::mutex mutex;
  static std::map<std::string, const backend::Backend*> loaded;
  const std::lock_guard lock(mutex);
  const backend::Backend*& known = loaded[name];
  if (known != nullptr) return *known;
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::string module = program.parent_path() / fmt::format("libharness_{}.so", name);
  const auto refuse = [&](const std::string& why) {
    throw NotLoaded(fmt::format("the {} backend could not be loaded: {}. {}", name, why, advice));
  };
  // Never closed: what it registered with its libraries lasts as long as the process.
  void* library = ::dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string words = ::dlerror();
    const char* path = std::getenv("LD_LIBRARY_PATH");
    refuse(explain_loader(words, module, path == nullptr ? "" : path));
  }
  using Get = const backend::Backend* (*)();
  const auto get = reinterpret_cast<Get>(::dlsym(library, fmt::format("harness_{}_backend", name).c_str()));
  if (get == nullptr) refuse(fmt::format("{} is not of this program: {}", module, ::dlerror()));
  known = get();
  return *known;
}

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
