#include "backend/load.h"

#include <dlfcn.h>

#include <filesystem>
#include <mutex>

namespace harness::backend {

const Backend& load_backend(const std::string& name, const std::string& advice) {
  static std::mutex mutex;
  static std::map<std::string, const Backend*> loaded;
  const std::lock_guard lock(mutex);
  const Backend*& backend = loaded[name];
  if (backend != nullptr) return *backend;
  const std::string file = fmt::format("libharness_{}.so", name);
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  // Never closed: what it registered with its libraries lasts as long as the process.
  void* library = ::dlopen((program.parent_path() / file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail("the {} backend could not be loaded: {}. {}", name, ::dlerror(), advice);
  using Get = const Backend* (*)();
  const auto get = reinterpret_cast<Get>(::dlsym(library, fmt::format("harness_{}_backend", name).c_str()));
  if (get == nullptr) fail("{} is not of this program: {}", (program.parent_path() / file).string(), ::dlerror());
  backend = get();
  return *backend;
}

}  // namespace harness::backend
