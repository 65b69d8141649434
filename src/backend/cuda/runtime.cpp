#include "backend/cuda/runtime.h"

#include <cuda_runtime_api.h>

#include <array>

#include "backend/backend.h"
#include "base/units.h"
#include "machine/cpus.h"

namespace harness::cuda {
namespace {

void check(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // so that the next call does not report this one again
  fail("{} failed: {} ({})", what, cudaGetErrorString(status), cudaGetErrorName(status));
}

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
  const char* const remedy =
      status == cudaErrorSystemNotReady  // NVLink's switches are not set up
          ? ": start nvidia-fabricmanager (on an NVL72, the rack's) in the same version as the driver"
          : "";
  if (status != cudaSuccess) fail("the GPUs could not be counted: {}{}", cudaGetErrorString(status), remedy);
  return count;
}

// Binds the thread to the CPUs near the GPU among those that the supervisor gave the worker, even if an earlier block
// bound it elsewhere. No effect if the kernel reports none.
void bind_near(const std::string& bus_id) {
  static const machine::CpuSet given = machine::bound_cpus();
  machine::bind_to(given & machine::cpus_near(bus_id));
}

}  // namespace

Memory::Memory(Kind kind, std::int64_t bytes, const std::string& what_for) : data_(nullptr, {kind}), bytes_(bytes) {
  if (bytes == 0) return;
  void* data = nullptr;
  const std::size_t size = bytes;
  const cudaError_t status = kind == Kind::device ? cudaMalloc(&data, size) : cudaMallocHost(&data, size);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    if (kind == Kind::pinned) {
      throw OutOfMemory(
          fmt::format("out of pinned host memory: {} for {}. Free memory on this node (`free -h`), or raise the memory "
                      "limit of the job or the container",
                      show_bytes(static_cast<double>(bytes)), what_for));
    }
    std::size_t free = 0, total = 0;
    static_cast<void>(cudaMemGetInfo(&free, &total));
    throw OutOfMemory(
        fmt::format("out of GPU memory: {} for {}; {} of the GPU's {} were free. A smaller micro_batch_size, or more "
                    "tensor_parallel or pipeline_parallel, needs less",
                    show_bytes(static_cast<double>(bytes)), what_for, show_bytes(static_cast<double>(free)),
                    show_bytes(static_cast<double>(total))));
  }
  check(status, kind == Kind::device ? "cudaMalloc" : "cudaMallocHost");
  data_.reset(static_cast<std::byte*>(data));
}

void Memory::Free::operator()(std::byte* data) const {
  static_cast<void>(kind == Kind::device ? cudaFree(data) : cudaFreeHost(data));
}

void Destroy::operator()(CUstream_st* stream) const {
  static_cast<void>(cudaStreamDestroy(stream));
}
void Destroy::operator()(CUevent_st* event) const {
  static_cast<void>(cudaEventDestroy(event));
}
void Destroy::operator()(CUgraphExec_st* graph) const {
  static_cast<void>(cudaGraphExecDestroy(graph));
}

OwnedStream::OwnedStream(Priority priority) {
  int lowest = 0, highest = 0;  // numerically, the highest is the smallest
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
  int level = lowest;
  if (priority == Priority::high) level = highest;
  if (priority == Priority::normal && lowest - highest > 1) level = lowest - 1;  // above low if there is a level for it
  Stream stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, level), "cudaStreamCreateWithPriority");
  stream_.reset(stream);
}

OwnedEvent::OwnedEvent(Timing timing) {
  Event event = nullptr;
  check(cudaEventCreateWithFlags(&event, timing == Timing::on ? cudaEventDefault : cudaEventDisableTiming),
        "cudaEventCreateWithFlags");
  event_.reset(event);
}

void OwnedEvent::record(Stream stream) const {
  check(cudaEventRecord(get(), stream), "cudaEventRecord");
}

bool OwnedEvent::done() const {
  const cudaError_t status = cudaEventQuery(get());
  if (status == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  check(status, "the work on the GPU");
  return true;
}

double OwnedEvent::seconds_since(const OwnedEvent& earlier) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, earlier.get(), get()), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
}

int device_ordinal(int visible, int local_rank, int local_ranks, bool share) {
  if (share) return local_rank % visible;
  if (visible == 1) return 0;  // the launcher shows each rank its own; supervisors check that they differ
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
  device.l2_bytes = properties.l2CacheSize;
  return device;
}

std::string print_version(std::size_t number) {
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
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

int current_device() {
  int ordinal = 0;
  check(cudaGetDevice(&ordinal), "cudaGetDevice");
  return ordinal;
}

void set_device(int ordinal) {
  check(cudaSetDevice(ordinal), "cudaSetDevice");
}

int compute_capability() {
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, current_device()), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, current_device()), "cudaDeviceGetAttribute");
  return 10 * major + minor;
}

std::int64_t used_memory_bytes() {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<std::int64_t>(total - free);
}

void wait_for(Stream stream, Event event) {
  check(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
}

void copy_in(Stream stream, void* device, const void* host, std::int64_t bytes) {
  check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream), "a copy to the GPU");
}

void copy_out(Stream stream, void* host, const void* device, std::int64_t bytes) {
  check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream), "a copy from the GPU");
}

void copy_within(Stream stream, void* to, const void* from, std::int64_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "a copy within the GPU");
}

void clear(Stream stream, void* device, std::int64_t bytes) {
  check(cudaMemsetAsync(device, 0, bytes, stream), "cudaMemsetAsync");
}

void synchronize(Stream stream) {
  check(cudaStreamSynchronize(stream), "the work on the GPU");
}

void synchronize_device() {
  const cudaError_t status = cudaDeviceSynchronize();
  if (status == cudaSuccess) return;
  throw DeviceFailed(
      fmt::format("the work on the GPU failed: {} ({})", cudaGetErrorString(status), cudaGetErrorName(status)));
}

Graph::Graph(Stream origin, const std::function<void()>& enqueue) {
  // Thread-local: other threads of this process (NCCL's proxies) must not break the capture.
  check(cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  cudaGraph_t graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    static_cast<void>(cudaStreamEndCapture(origin, &graph));
    if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
    throw;
  }
  check(cudaStreamEndCapture(origin, &graph), "the capture of a step");
  // Without the flag, every node has the priority of the stream that launches the graph, not of the stream it was
  // captured from, and communication would wait behind concurrent kernels.
  cudaGraphExec_t executable = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagUseNodePriority);
  static_cast<void>(cudaGraphDestroy(graph));
  check(status, "cudaGraphInstantiate");
  executable_.reset(executable);
  check(cudaGraphUpload(executable, origin), "cudaGraphUpload");
}

void Graph::launch(Stream stream) const {
  check(cudaGraphLaunch(executable_.get(), stream), "cudaGraphLaunch");
}

}  // namespace harness::cuda
