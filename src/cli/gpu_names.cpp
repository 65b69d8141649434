#include "cli/gpu_names.h"

#include <dlfcn.h>

#include <array>

namespace harness::cli {
namespace {

// The few functions of NVML that are used, by its C ABI, which the driver keeps
// (https://docs.nvidia.com/deploy/nvml-api/): results are 0 for success.
using Device = struct nvmlDevice_st*;
struct Memory {
  unsigned long long total, free, used;  // bytes
};

struct Nvml {
  int (*initialise)() = nullptr;
  int (*shut_down)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;

  // False if the library is no NVML. It stays loaded.
  bool load() {
    void* handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return false;
    const auto find = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
      return function != nullptr;
    };
    return find(initialise, "nvmlInit_v2") && find(shut_down, "nvmlShutdown") && find(count, "nvmlDeviceGetCount_v2") &&
           find(by_index, "nvmlDeviceGetHandleByIndex_v2") && find(name, "nvmlDeviceGetName") &&
           find(memory, "nvmlDeviceGetMemoryInfo");
  }
};

}  // namespace

std::vector<Gpu> gpus_of_driver() {
  std::vector<Gpu> gpus;
  Nvml nvml;
  if (!nvml.load() || nvml.initialise() != 0) return gpus;
  unsigned count = 0;
  if (nvml.count(&count) != 0) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    std::array<char, 96> name{};
    Memory memory{};
    if (nvml.by_index(i, &device) != 0 || nvml.name(device, name.data(), name.size()) != 0) continue;
    if (nvml.memory(device, &memory) != 0) memory = {};
    gpus.push_back({name.data(), static_cast<double>(memory.total)});
  }
  nvml.shut_down();
  return gpus;
}

}  // namespace harness::cli
