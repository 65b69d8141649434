#include "backends/load.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>

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

}  // namespace harness::backends
