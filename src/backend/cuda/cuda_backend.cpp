#include "backend/cuda/cuda_backend.h"

#include <algorithm>
#include <utility>

#include "backend/cuda/attention.h"
#include "backend/cuda/collectives.h"
#include "backend/cuda/tuner.h"
#include "base/text.h"

namespace harness::cuda {
namespace {

class CudaBackend : public backend::Backend {
 public:
  config::BackendKind kind() const override { return config::BackendKind::cuda; }

  std::vector<std::pair<std::string, std::string>> identity(const backend::ExecutableRequest& request) const override {
    const Device device = use_device(request);
    return {{"device", device.name},
            {"compute_capability", fmt::format("{}.{}", device.major, device.minor)},
            {"multiprocessors", std::to_string(device.multiprocessors)},
            {"cuda_driver", driver_version()},
            {"cuda_runtime", runtime_version()},
            {"cublaslt", Blas::version()},
            {"cudnn", cudnn_version()},
            {"nccl", Collectives::version()}};
  }

  std::string device(const backend::ExecutableRequest& request) const override {
    const Device device = use_device(request);
    return fmt::format("{} {}", device.bus_id, device.name);
  }

  std::unique_ptr<backend::Executable> create(const backend::ExecutableRequest& request) const override {
    return make_executable(request);
  }

  backend::Tuning tune(const backend::ExecutableRequest& request) const override {
    const Device device = use_device(request);
    const bool tf32 = request.settings.precision == config::Precision::tf32;
    const backend::Tuning known = request.tuning ? *request.tuning : backend::Tuning{};
    Effort effort;
    effort.limit_s = request.tuning_s;
    effort.warm_up_s = std::min(effort.warm_up_s, request.tuning_s / 10);
    return tune_products(*request.program, tf32, known, device.l2_bytes, effort);
  }

  double measure_matmul_flops(config::Precision precision, const backend::ExecutableRequest& request,
                              double seconds) const override {
    static_cast<void>(use_device(request));
    return measure_products(precision, seconds);
  }

  double measure_copy_bandwidth(const backend::ExecutableRequest& request, double seconds) const override {
    static_cast<void>(use_device(request));
    return measure_copies(seconds);
  }

  machine::HostCopies measure_host_copies(const backend::ExecutableRequest& request, double seconds) const override {
    static_cast<void>(use_device(request));
    return cuda::measure_host_copies(seconds);
  }
};

}  // namespace

const backend::Backend& cuda_backend() {
  static const CudaBackend the_backend;
  return the_backend;
}

}  // namespace harness::cuda

// load_backend() looks for this name.
extern "C" __attribute__((visibility("default"))) const harness::backend::Backend* harness_cuda_backend() {
  return &harness::cuda::cuda_backend();
}
