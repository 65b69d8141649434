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

// Where the kernel tells of none near it, CPUs stay as they are. They are some of those that the supervisor gave the
// worker, also when another block bound it before.
void bind_near(const std::string& bus_id) {
  static const machine::CpuSet given = machine::bound_cpus();
  machine::bind_to(given & machine::cpus_near(bus_id));
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
    bind_near(device.bus_id);
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
