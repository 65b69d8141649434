#include "machine/gpus.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <type_traits>

#include "base/text.h"
#include "machine/tree.h"

namespace harness::machine {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 6 && std::ranges::all_of(text, is_digit);
}

// nvidia0, nvidia1, …; not nvidiactl or nvidia-uvm.
bool is_device(std::string_view name) {
  constexpr std::string_view stem = "nvidia";
  return name.starts_with(stem) && is_number(name.substr(stem.size()));
}

// Whether the driver is one that does not list its GPUs in /proc: WSL (dxg) or Tegra (nvhost, nvmap).
bool other_driver(const Tree& tree) {
  return std::ranges::any_of(std::initializer_list<const char*>{"dev/dxg", "dev/nvmap", "dev/nvhost-gpu", "dev/nvgpu"},
                             [&](const char* path) { return tree.exists(path); });
}

int gpus_on_node(const Tree& tree) {
  if (other_driver(tree)) return -1;
  // A container may show the whole node's /proc but device files of its own GPUs only, or the reverse.
  const std::ptrdiff_t listed = std::ssize(tree.names("proc/driver/nvidia/gpus").names);
  const std::ptrdiff_t devices = std::ranges::count_if(tree.names("dev").names, is_device);
  return static_cast<int>(listed > 0 && devices > 0 ? std::min(listed, devices) : std::max(listed, devices));
}

// Reads CUDA_VISIBLE_DEVICES like CUDA: up to the first entry that is not a device.
std::vector<std::string> visible_names(std::string_view text, int on_node) {
  std::vector<std::string> names;
  for (std::string_view name : split(text, ',')) {
    name = trim(name);
    const bool by_id = name.starts_with("GPU-") || name.starts_with("MIG-");
    if (!by_id && (!is_number(name) || std::stoi(std::string(name)) >= on_node)) break;
    names.emplace_back(name);
  }
  return names;
}

// Parts of NVML's C ABI, which the driver keeps stable (https://docs.nvidia.com/deploy/nvml-api/). Calls below must
// pass the exact argument types of NVML's declarations.
using Device = void*;  // nvmlDevice_t
constexpr int success = 0, function_not_found = 13;
constexpr int clock_sm = 1, temperature_gpu = 0;
struct Utilisation {
  unsigned gpu_percent, memory_percent;
};
struct Memory {
  unsigned long long total, free, used;  // bytes
};
struct PciPlace {
  std::array<char, 16> old_bus_id;
  unsigned domain, bus, device, pci_device, pci_subsystem;
  std::array<char, 32> bus_id;
};
struct Fabric {  // version 2
  unsigned version = sizeof(Fabric) | 2u << 24;
  std::array<unsigned char, 16> cluster{};
  int status = 0;
  unsigned clique = 0;
  unsigned char state = 0;
  unsigned health = 0;
};
struct FieldValue {
  unsigned field = 0, scope = 0;
  long long timestamp = 0, latency = 0;
  int type = 0, result = 0;
  union {
    double real;
    unsigned whole;
    unsigned long long large = 0;
  };
};
constexpr unsigned field_recovery_action = 230;
constexpr int link_recoveries = 1, link_crc_flits = 2;  // counters of an NVLink's errors
constexpr int insufficient_size = 7, uncorrected = 1, since_driver_load = 0;
constexpr unsigned most_nvlinks = 18;

constexpr double hz_per_mhz = 1e6, w_per_mw = 1e-3, j_per_mj = 1e-3;
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

// Any thread may call NVML. It is never unloaded: a thread that hangs in it may outlive main().
void* nvml() {
  static void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  return library;
}

// Looks the function up on each call, which takes a microsecond. If a function fails or the driver lacks it, only its
// value is unknown.
template <class... Arguments>
int call_nvml(const char* function, Arguments... arguments) {
  const auto found = reinterpret_cast<int (*)(Arguments...)>(dlsym(nvml(), function));
  return found == nullptr ? function_not_found : found(arguments...);
}

std::string nvml_error(int result) {
  const auto text = reinterpret_cast<const char* (*)(int)>(dlsym(nvml(), "nvmlErrorString"));
  return text == nullptr ? fmt::format("error {}", result) : text(result);
}

// Initialises NVML on first use. Returns why it cannot be used; "" if the functions below may be called.
const std::string& nvml_problem() {
  static const std::string problem = [] {
    if (nvml() == nullptr) {
      const char* error = dlerror();
      return fmt::format("no NVML: {}; it comes with the NVIDIA driver", error != nullptr ? error : "not found");
    }
    const int result = call_nvml("nvmlInit_v2");
    if (result == function_not_found) return std::string("this libnvidia-ml.so.1 lacks nvmlInit_v2 or its like");
    return result == success ? std::string() : fmt::format("nvmlInit failed: {}", nvml_error(result));
  }();
  return problem;
}

GpuSample sample_of(Device device) {
  GpuSample now;
  unsigned value = 0;
  Utilisation use{};
  if (call_nvml("nvmlDeviceGetUtilizationRates", device, &use) == success) now.utilisation = use.gpu_percent / 100.0;
  if (call_nvml("nvmlDeviceGetClockInfo", device, clock_sm, &value) == success) now.sm_clock_hz = value * hz_per_mhz;
  if (call_nvml("nvmlDeviceGetPowerUsage", device, &value) == success) now.power_w = value * w_per_mw;
  if (call_nvml("nvmlDeviceGetTemperature", device, temperature_gpu, &value) == success) now.temperature_c = value;
  Memory memory{};
  if (call_nvml("nvmlDeviceGetMemoryInfo", device, &memory) == success) {
    now.memory_used_bytes = static_cast<double>(memory.used);
  }
  // The name since driver 535, and the earlier one.
  unsigned long long bits = 0;
  if (call_nvml("nvmlDeviceGetCurrentClocksEventReasons", device, &bits) == success ||
      call_nvml("nvmlDeviceGetCurrentClocksThrottleReasons", device, &bits) == success) {
    now.throttle_reasons = bits;
  }
  return now;
}

double max_sm_clock_hz(Device device) {
  unsigned mhz = 0;
  return call_nvml("nvmlDeviceGetMaxClockInfo", device, clock_sm, &mhz) == success ? mhz * hz_per_mhz : unknown;
}

double energy_j(Device device) {
  unsigned long long mj = 0;
  return call_nvml("nvmlDeviceGetTotalEnergyConsumption", device, &mj) == success ? static_cast<double>(mj) * j_per_mj
                                                                                  : unknown;
}

GpuHealth health_of(Device device) {
  GpuHealth gpu;
  const auto number = [&]<class T, class Raw>(const char* function, std::optional<T>& into, Raw value, T unit = 1) {
    if (call_nvml(function, device, &value) == success) into = static_cast<T>(value) * unit;
  };
  std::array<char, 96> text{};
  PciPlace place{};
  if (call_nvml("nvmlDeviceGetPciInfo_v3", device, &place) == success) {
    gpu.pci_bus_id = fmt::format("{:04x}:{:02x}:{:02x}.0", place.domain, place.bus, place.device);
  }
  if (call_nvml("nvmlDeviceGetName", device, text.data(), static_cast<unsigned>(text.size())) == success)
    gpu.name = text.data();
  number("nvmlDeviceGetPersistenceMode", gpu.persistence, 0);
  number("nvmlDeviceGetComputeMode", gpu.compute_mode, 0);
  unsigned mig = 0, mig_pending = 0;
  if (call_nvml("nvmlDeviceGetMigMode", device, &mig, &mig_pending) == success) gpu.mig = mig != 0;
  unsigned long long errors = 0;
  if (call_nvml("nvmlDeviceGetTotalEccErrors", device, uncorrected, since_driver_load, &errors) == success) {
    gpu.ecc_uncorrected = errors;
  }
  unsigned corrected_rows = 0, uncorrected_rows = 0, remap_pending = 0, remap_failed = 0;
  if (call_nvml("nvmlDeviceGetRemappedRows", device, &corrected_rows, &uncorrected_rows, &remap_pending,
                &remap_failed) == success) {
    gpu.row_remap_pending = remap_pending != 0;
    gpu.row_remap_failed = remap_failed != 0;
  }
  number("nvmlDeviceGetEnforcedPowerLimit", gpu.power_limit_w, 0u, w_per_mw);
  number("nvmlDeviceGetPowerManagementDefaultLimit", gpu.default_power_limit_w, 0u, w_per_mw);
  const auto total = [&](const char* function, std::optional<double>& into) {
    Memory memory{};
    if (call_nvml(function, device, &memory) == success) into = static_cast<double>(memory.total);
  };
  total("nvmlDeviceGetMemoryInfo", gpu.memory_bytes);
  total("nvmlDeviceGetBAR1MemoryInfo", gpu.bar1_bytes);
  number("nvmlDeviceGetCurrPcieLinkWidth", gpu.pcie_width, 0u);
  number("nvmlDeviceGetMaxPcieLinkWidth", gpu.pcie_max_width, 0u);
  number("nvmlDeviceGetCurrentClocksEventReasons", gpu.throttle_reasons, 0ull);
  if (!gpu.throttle_reasons) number("nvmlDeviceGetCurrentClocksThrottleReasons", gpu.throttle_reasons, 0ull);
  unsigned processes = 0;  // without room for entries, the call returns their number
  const int counted =
      call_nvml("nvmlDeviceGetComputeRunningProcesses_v3", device, &processes, static_cast<void*>(nullptr));
  if (counted == success || counted == insufficient_size) gpu.processes = processes;
  for (unsigned link = 0; link < most_nvlinks; ++link) {
    int active = 0;
    if (call_nvml("nvmlDeviceGetNvLinkState", device, link, &active) != success) break;
    gpu.nvlinks.push_back(active != 0);
  }
  const auto add_count = [&](int counter, std::optional<std::uint64_t>& sum) {
    for (unsigned link = 0; link < gpu.nvlinks.size(); ++link) {
      unsigned long long count = 0;
      if (call_nvml("nvmlDeviceGetNvLinkErrorCounter", device, link, counter, &count) == success)
        sum = sum.value_or(0) + count;
    }
  };
  add_count(link_recoveries, gpu.nvlink_recoveries);
  add_count(link_crc_flits, gpu.nvlink_crc_errors);
  FieldValue recovery;
  recovery.field = field_recovery_action;
  if (call_nvml("nvmlDeviceGetFieldValues", device, 1, &recovery) == success && recovery.result == success)
    gpu.recovery_action = recovery.whole;
  Fabric fabric;
  if (call_nvml("nvmlDeviceGetGpuFabricInfoV", device, &fabric) == success && fabric.state > 0) {
    gpu.fabric_state = fabric.state;
    gpu.fabric_status = fabric.status;
    gpu.fabric_health = fabric.health;
  }
  return gpu;
}

constexpr auto period = std::chrono::milliseconds(100);
constexpr auto patience = std::chrono::seconds(2);

}  // namespace

GpuView find_gpus(const GpuEnvironment& environment, const std::filesystem::path& root) {
  GpuView view;
  view.on_node = gpus_on_node(Tree(root));
  if (view.on_node < 0) return view;
  if (environment.restricted) {
    view.names = visible_names(environment.visible, view.on_node);
    if (!environment.own_task.empty() && view.names.size() == 1 && is_number(view.names[0])) {
      view.names[0] += " of task " + environment.own_task;
    }
  } else {
    for (int i = 0; i < view.on_node; ++i) view.names.push_back(std::to_string(i));
  }
  view.count = static_cast<int>(view.names.size());
  return view;
}

GpuReport gpu_report() {
  GpuReport report{nvml_problem(), {}, {}};
  if (!report.unavailable.empty()) return report;
  std::array<char, 96> version{};
  if (call_nvml("nvmlSystemGetDriverVersion", version.data(), static_cast<unsigned>(version.size())) == success) {
    report.driver = version.data();
  }
  unsigned count = 0;
  if (call_nvml("nvmlDeviceGetCount_v2", &count) != success) return report;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    if (call_nvml("nvmlDeviceGetHandleByIndex_v2", i, &device) == success) report.gpus.push_back(health_of(device));
  }
  return report;
}

// Shared with the thread, so that a thread that hangs in the driver can be abandoned.
struct GpuMonitor::Watch {
  explicit Watch(Device gpu) : device(gpu) {}

  const Device device;
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false, running = false;
  std::vector<GpuSample> samples;
  double energy_begin_j = std::numeric_limits<double>::quiet_NaN();
  double energy_end_j = std::numeric_limits<double>::quiet_NaN();

  void end() {
    const std::lock_guard lock(mutex);
    stopping = true;
    changed.notify_all();
  }

  static void run(const std::shared_ptr<Watch>& watch) {
    const double begin_j = energy_j(watch->device);
    std::unique_lock lock(watch->mutex);
    watch->energy_begin_j = begin_j;
    for (bool last = false; !last;) {
      last = watch->stopping;
      lock.unlock();  // NVML is never called with the lock held
      const GpuSample now = sample_of(watch->device);
      const double energy = energy_j(watch->device);
      lock.lock();
      watch->samples.push_back(now);
      watch->energy_end_j = energy;
      if (!last) watch->changed.wait_for(lock, period, [&] { return watch->stopping; });
    }
    watch->running = false;
    watch->changed.notify_all();
  }
};

GpuMonitor::GpuMonitor(const std::string& pci_bus_id) : problem_(nvml_problem()) {
  if (!problem_.empty()) return;
  Device device = nullptr;  // found by its address in CUDA, because NVML numbers devices differently
  const int result = call_nvml("nvmlDeviceGetHandleByPciBusId_v2", pci_bus_id.c_str(), &device);
  if (result == success) {
    watch_ = std::make_shared<Watch>(device);
  } else {
    problem_ = fmt::format("NVML finds no GPU at {}: {}", pci_bus_id, nvml_error(result));
  }
}

GpuMonitor::~GpuMonitor() {
  if (watch_) watch_->end();
}

void GpuMonitor::start() {
  if (!watch_) return;
  watch_->end();  // ends a run that was not stopped
  watch_ = std::make_shared<Watch>(watch_->device);
  watch_->running = true;
  try {
    std::thread(Watch::run, watch_).detach();
  } catch (const std::system_error&) {  // no thread available: the block has no statistics
    watch_->running = false;
  }
}

GpuStatistics GpuMonitor::stop() {
  if (!watch_) return {};
  watch_->end();
  std::unique_lock lock(watch_->mutex);
  watch_->changed.wait_for(lock, patience, [&] { return !watch_->running; });
  GpuStatistics statistics = summarise(watch_->samples);
  statistics.energy_j = watch_->energy_end_j - watch_->energy_begin_j;
  const bool answered = !watch_->running && statistics.samples > 0;
  lock.unlock();
  if (answered) statistics.max_possible_sm_clock_hz = max_sm_clock_hz(watch_->device);
  return statistics;
}

}  // namespace harness::machine
