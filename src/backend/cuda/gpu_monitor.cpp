#include "backend/cuda/gpu_monitor.h"

#include <dlfcn.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"

namespace harness::cuda {
namespace {

constexpr auto period = std::chrono::milliseconds(100);
constexpr auto patience = std::chrono::seconds(2);

// The few functions of NVML that are used, by its C ABI, which the driver keeps
// (https://docs.nvidia.com/deploy/nvml-api/): results are 0 for success.
using NvmlDevice = struct nvmlDevice_st*;
struct Utilisation {
  unsigned gpu_percent, memory_percent;
};
struct NvmlMemory {
  unsigned long long total, free, used;  // bytes
};
enum : int { clock_sm = 1, temperature_gpu = 0 };

struct Nvml {
  std::string problem;
  int (*initialise)() = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*by_bus_id)(const char*, NvmlDevice*) = nullptr;
  int (*utilisation)(NvmlDevice, Utilisation*) = nullptr;
  int (*clock)(NvmlDevice, int, unsigned*) = nullptr;
  int (*max_clock)(NvmlDevice, int, unsigned*) = nullptr;
  int (*power)(NvmlDevice, unsigned*) = nullptr;
  int (*temperature)(NvmlDevice, int, unsigned*) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*throttle)(NvmlDevice, unsigned long long*) = nullptr;
  int (*energy)(NvmlDevice, unsigned long long*) = nullptr;

  Nvml() {
    void* handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* error = dlerror();
      problem = fmt::format("no NVML: {}; it comes with the NVIDIA driver", error != nullptr ? error : "not found");
      return;
    }
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      return function != nullptr;
    };
    // Without these there is nothing; each of the others leaves its own value out.
    if (!find(initialise, "nvmlInit_v2") || !find(error_text, "nvmlErrorString") ||
        !find(by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2")) {
      problem = "this libnvidia-ml.so.1 lacks nvmlInit_v2 or its like";
      return;
    }
    find(utilisation, "nvmlDeviceGetUtilizationRates");
    find(clock, "nvmlDeviceGetClockInfo");
    find(max_clock, "nvmlDeviceGetMaxClockInfo");
    find(power, "nvmlDeviceGetPowerUsage");
    find(temperature, "nvmlDeviceGetTemperature");
    find(memory, "nvmlDeviceGetMemoryInfo");
    find(energy, "nvmlDeviceGetTotalEnergyConsumption");
    // The name since driver 535, and the one before.
    find(throttle, "nvmlDeviceGetCurrentClocksEventReasons") ||
        find(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons");
    if (const int result = initialise(); result != 0) problem = fmt::format("nvmlInit failed: {}", error_text(result));
  }
};

Nvml& nvml() {
  static Nvml* const loaded = new Nvml;  // the sampling thread may outlive static destructors
  return *loaded;
}

constexpr double hz_per_mhz = 1e6, w_per_mw = 1e-3, j_per_mj = 1e-3;

backend::GpuSample sample(NvmlDevice device) {
  Nvml& api = nvml();
  backend::GpuSample now;
  Utilisation use{};
  unsigned value = 0;
  unsigned long long bits = 0;
  NvmlMemory memory{};
  if (api.utilisation != nullptr && api.utilisation(device, &use) == 0) now.utilisation = use.gpu_percent / 100.0;
  if (api.clock != nullptr && api.clock(device, clock_sm, &value) == 0) now.sm_clock_hz = value * hz_per_mhz;
  if (api.power != nullptr && api.power(device, &value) == 0) now.power_w = value * w_per_mw;
  if (api.temperature != nullptr && api.temperature(device, temperature_gpu, &value) == 0) now.temperature_c = value;
  if (api.memory != nullptr && api.memory(device, &memory) == 0) {
    now.memory_used_bytes = static_cast<double>(memory.used);
  }
  if (api.throttle != nullptr && api.throttle(device, &bits) == 0) now.throttle_reasons = bits;
  return now;
}

}  // namespace

// Shared with the thread, so that a thread that hangs in the driver can be left behind.
struct GpuMonitor::Watch {
  NvmlDevice device = nullptr;
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false, running = false;
  std::vector<backend::GpuSample> samples;
  double energy_begin_j = std::numeric_limits<double>::quiet_NaN();
  double energy_end_j = std::numeric_limits<double>::quiet_NaN();

  double energy_j() const {
    unsigned long long millijoules = 0;
    const auto read = nvml().energy;
    if (read == nullptr || read(device, &millijoules) != 0) return std::numeric_limits<double>::quiet_NaN();
    return static_cast<double>(millijoules) * j_per_mj;
  }

  static void run(const std::shared_ptr<Watch>& watch) {
    const double begin_j = watch->energy_j();
    std::unique_lock lock(watch->mutex);
    watch->energy_begin_j = begin_j;
    for (bool last = false; !last;) {
      last = watch->stopping;
      lock.unlock();  // NVML is never called with the lock held
      const backend::GpuSample now = sample(watch->device);
      const double energy = watch->energy_j();
      lock.lock();
      watch->samples.push_back(now);
      watch->energy_end_j = energy;
      if (!last) watch->changed.wait_for(lock, period, [&] { return watch->stopping; });
    }
    watch->running = false;
    watch->changed.notify_all();
  }
};

GpuMonitor::GpuMonitor(const std::string& pci_bus_id) {
  Nvml& api = nvml();
  problem_ = api.problem;
  if (!problem_.empty()) return;
  NvmlDevice device = nullptr;
  if (const int result = api.by_bus_id(pci_bus_id.c_str(), &device); result != 0) {
    problem_ = fmt::format("NVML finds no GPU at {}: {}", pci_bus_id, api.error_text(result));
    return;
  }
  watch_ = std::make_shared<Watch>();
  watch_->device = device;
}

GpuMonitor::~GpuMonitor() {
  if (!watch_) return;
  const std::lock_guard lock(watch_->mutex);
  watch_->stopping = true;
  watch_->changed.notify_all();
}

void GpuMonitor::start() {
  if (!watch_) return;
  const NvmlDevice device = watch_->device;
  {
    const std::lock_guard lock(watch_->mutex);
    watch_->stopping = true;  // one that was not stopped
    watch_->changed.notify_all();
  }
  watch_ = std::make_shared<Watch>();
  watch_->device = device;
  watch_->running = true;
  try {
    std::thread(Watch::run, watch_).detach();
  } catch (const std::system_error&) {  // no more threads: a block without statistics
    watch_->running = false;
  }
}

backend::GpuStatistics GpuMonitor::stop() {
  if (!watch_) return {};
  std::unique_lock lock(watch_->mutex);
  watch_->stopping = true;
  watch_->changed.notify_all();
  watch_->changed.wait_for(lock, patience, [&] { return !watch_->running; });
  backend::GpuStatistics statistics = backend::summarise(watch_->samples);
  statistics.energy_j = watch_->energy_end_j - watch_->energy_begin_j;
  const NvmlDevice device = watch_->device;
  const bool answered = !watch_->running && statistics.samples > 0;
  lock.unlock();
  unsigned mhz = 0;
  if (answered && nvml().max_clock != nullptr && nvml().max_clock(device, clock_sm, &mhz) == 0) {
    statistics.max_possible_sm_clock_hz = mhz * hz_per_mhz;
  }
  return statistics;
}

}  // namespace harness::cuda
