#include "backend/cpu/cpu_backend.h"

#include <gloo/config.h>
#include <omp.h>

#include <vector>

#include "backend/cpu/executable.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/onednn.h"
#include "base/clock.h"
#include "base/random.h"
#include "machine/cpus.h"

namespace harness::cpu {
namespace {

// The amount per second of calls that each do `amount`, for about `seconds`; one call at least.
template <class F>
double rate_of(double amount, double seconds, const F& call) {
  double total = 0;
  const double begin = system_clock().seconds();
  double end = begin;
  while (end - begin < seconds || total == 0) {
    call();
    total += amount;
    end = system_clock().seconds();
  }
  return total / (end - begin);
}

class CpuBackend : public backend::Backend {
 public:
  config::BackendKind kind() const override { return config::BackendKind::cpu; }

  std::vector<std::pair<std::string, std::string>> identity(
      const backend::ExecutableRequest& /*where*/) const override {
    return {{"cpu", machine::cpu_model()},
            {"onednn", cpu::onednn_version()},
            {"onednn_isa", cpu::onednn_instruction_set()},
            {"gloo", fmt::format("{}.{}.{} (of the header at build time)", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR,
                                 GLOO_VERSION_PATCH)},
            {"openmp", std::to_string(_OPENMP)}};
  }

  std::unique_ptr<backend::Executable> create(const backend::ExecutableRequest& request) const override {
    return std::make_unique<cpu::CpuExecutable>(request);
  }

  double measure_matmul_flops(config::Precision precision, const backend::ExecutableRequest& where,
                              double seconds) const override {
    if (config::is_low(precision)) return 0;  // emulated: nothing that MFU could be a share of
    omp_set_num_threads(where.threads);
    constexpr std::int64_t n = 1024;
    const program::DType type = config::storage_of(precision);
    // Random numbers: what units draw, and so how fast they run, depends on the data.
    std::vector<float> a(n * n), b(n * n), out(n * n);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto x = philox(1, i);
      const auto number = [](std::uint32_t bits) { return static_cast<float>(uniform_open(bits) - 0.5); };
      a[i] = number(x[0]);
      b[i] = number(x[1]);
      if (type != program::DType::f32) {  // two of them in the place of one
        const auto half = [&](std::uint32_t bits) -> std::uint32_t {
          return type == program::DType::bf16 ? to_bf16(number(bits)).bits : to_f16(number(bits)).bits;
        };
        a[i] = std::bit_cast<float>(half(x[0]) | half(x[1]) << 16);
        b[i] = std::bit_cast<float>(half(x[2]) | half(x[3]) << 16);
      }
    }
    cpu::Workspace workspace;
    const cpu::MatrixForm in{type, n, 1, 0}, result{program::DType::f32, n, 1, 0};
    cpu::Product product({.m = n, .n = n, .k = n, .a = in, .b = in, .out = result}, workspace);
    const auto once = [&] { product(a.data(), b.data(), out.data()); };
    for (int i = 0; i < 3; ++i) once();
    return rate_of(2.0 * n * n * n, seconds, once);
  }

  double measure_copy_bandwidth(const backend::ExecutableRequest& where, double seconds) const override {
    omp_set_num_threads(where.threads);
    constexpr std::int64_t n = 64 << 20;  // 256 MiB each way: more than the last cache of any CPU of today but few
    std::vector<float> from(n, 1), to(n);
    const backend::Tensor in{from.data(), program::DType::f32, n}, out{to.data(), program::DType::f32, n};
    const auto copy = [&] { cpu::run(backend::Bound<program::Convert>{in, out}); };
    copy();
    return rate_of(2.0 * n * program::size_of(program::DType::f32), seconds, copy);
  }
};

}  // namespace

const backend::Backend& cpu_backend() {
  static const CpuBackend the_backend;
  return the_backend;
}

}  // namespace harness::cpu
