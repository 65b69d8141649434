#include "backend/cuda/device.h"

#include <cuda_runtime_api.h>

#include <array>

#include "base/error.h"
#include "machine/cpus.h"

namespace harness::cuda {
namespace {

std::string version_text(int number) {  // 13000 is 13.0
  return number == 0 ? "" : fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

int visible_devices() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  static_cast<void>(cudaGetLastError());
  if (status == cudaErrorInsufficientDriver || status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) {
    fail(
        "there is no GPU here that CUDA {} can use: {}. `nvidia-smi` on this node shows driver and GPUs; without any, "
        "`harness plan` works, and so does `backend: cpu`",
        runtime_version(), status == cudaSuccess ? "none is visible" : cudaGetErrorString(status));
  }
  if (status != cudaSuccess) fail("the GPUs could not be counted: {}", cudaGetErrorString(status));
  return count;
}

// Returns what cannot be. The CPUs are some of those that the supervisor gave the worker, also when another block bound
// it before.
std::vector<std::string> bind_near(const std::string& bus_id, config::HostBinding binding) {
  using config::HostBinding;
  if (binding == HostBinding::none) return {};
  static const machine::CpuSet given = machine::bound_cpus();
  const machine::Surroundings near = machine::surroundings_of(bus_id);
  const machine::CpuSet cpus = binding == HostBinding::core ? machine::part_of_gpu(bus_id, given) : given & near.cpus;
  machine::bind_to(cpus);
  if (binding == HostBinding::automatic) return {};
  std::vector<std::string> warnings;
  if (cpus.none()) {
    warnings.push_back(fmt::format(
        "host_binding binds the worker of GPU {} to no CPUs: the kernel tells of none near it that the job has{}; look "
        "at /sys/bus/pci/devices/*/local_cpulist and at what the launcher binds to",
        bus_id, binding == HostBinding::core ? ", a core for each GPU" : ""));
  }
  const std::string problem =
      near.numa_node < 0 ? "the kernel does not tell which NUMA node is near; a virtual machine needs a NUMA topology"
                         : machine::with_advice(machine::set_memory_policy(machine::preferring(near.numa_node)));
  if (!problem.empty())
    warnings.push_back(fmt::format("host_binding: the worker of GPU {} takes memory as usual: {}", bus_id, problem));
  return warnings;
}

}  // namespace

int device_ordinal(int visible, int local_rank, int local_ranks, bool share) {
  if (share) return local_rank % visible;
  if (visible == 1) return 0;  // the launcher shows each rank its own; the supervisors see to it that they differ
  if (local_rank < visible) return local_rank;
  fail(
      "rank {} of the {} ranks on this node has no GPU: {} are visible. Start as many ranks per node as it has GPUs "
      "(mpirun --map-by ppr:{}:node)",
      local_rank, local_ranks, visible, visible);
}

Device use_device(const backend::ExecutableRequest& request) {
  Device device;
  device.ordinal = device_ordinal(visible_devices(), request.local_rank, request.local_ranks, request.share_devices);
  std::array<char, 32> bus_id{};
  cudaError_t status = cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), device.ordinal);
  device.bus_id = bus_id.data();
  if (status == cudaSuccess) {
    device.warnings = bind_near(device.bus_id, request.settings.host_binding);
    status = cudaSetDevice(device.ordinal);
  }
  cudaDeviceProp properties{};
  if (status == cudaSuccess) status = cudaGetDeviceProperties(&properties, device.ordinal);
  if (status != cudaSuccess) fail("GPU {} could not be used: {}", device.ordinal, cudaGetErrorString(status));
  device.name = properties.name;
  device.multiprocessors = properties.multiProcessorCount;
  device.major = properties.major;
  device.minor = properties.minor;
  device.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  device.l2_bytes = properties.l2CacheSize;
  return device;
}

std::string runtime_version() {
  int number = 0;
  static_cast<void>(cudaRuntimeGetVersion(&number));
  return version_text(number);
}

std::string driver_version() {
  int number = 0;
  static_cast<void>(cudaDriverGetVersion(&number));
  return version_text(number);
}

}  // namespace harness::cuda
