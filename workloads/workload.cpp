#include "workloads/workload.h"

#include "base/random.h"
#include "workloads/gpt/gpt.h"

namespace harness {

ProgramSet build_programs(const Model& model, const Settings& settings, const Layout& layout) {
  switch (settings.workload) {
    case WorkloadKind::collective:
      return collective_programs(settings, layout);
    case WorkloadKind::gemm:
      return gemm_programs(settings, layout);
    case WorkloadKind::attention:
      return attention_programs(settings, layout);
    case WorkloadKind::gpt:
      break;
  }
  return gpt::programs(model, settings, layout);
}

Program build_role(const Model& model, const Settings& settings, const Layout& layout, int role) {
  if (settings.workload == WorkloadKind::gpt) return gpt::program(model, settings, layout, role);
  return build_programs(model, settings, layout).roles.at(static_cast<std::size_t>(role));
}

std::unique_ptr<OutputCheck> make_output_check(const Settings& settings, const Layout& layout, const Coordinates& at,
                                               const Program& program) {
  switch (settings.workload) {
    case WorkloadKind::collective:
      return collective_check(settings, layout, at, program);
    case WorkloadKind::gemm:
      return gemm_check(settings, program);
    case WorkloadKind::attention:
      return attention_check(settings, program);
    case WorkloadKind::gpt:
      break;
  }
  return nullptr;
}

namespace {

// Random tokens. Sample number g of the run, position t: the same on every rank and in every layout.
class TokenSource : public InputSource {
 public:
  TokenSource(const Model& model, const Settings& settings, const Layout& layout, const Coordinates& at,
              std::uint64_t seed)
      : model_(model),
        batch_(settings.global_batch_size),
        local_(batch_ / layout[Axis::data]),
        first_(local_ * at[Axis::data]),
        repeat_(settings.repeat_batch),
        seed_(seed) {}

  void fill(const std::string& buffer, std::int64_t step, std::span<std::byte> to) const override {
    if (buffer == gpt::learning_rate_buffer) {
      *reinterpret_cast<float*>(to.data()) = learning_rate;
      return;
    }
    const std::int64_t shift = buffer == gpt::labels_buffer ? 1 : 0;
    auto* out = reinterpret_cast<std::int32_t*>(to.data());
    if (repeat_) step = 0;
    for (std::int64_t sample = 0; sample < local_; ++sample) {
      const std::int64_t number = (step * batch_ + first_ + sample) * (model_.sequence + 1);
      for (std::int64_t t = 0; t < model_.sequence; ++t) {
        const std::uint64_t bits = philox(seed_, static_cast<std::uint64_t>(number + t + shift), token_stream)[0];
        *out++ = static_cast<std::int32_t>(bits * static_cast<std::uint64_t>(model_.vocab) >> 32);
      }
    }
  }

 private:
  static constexpr float learning_rate = 1e-3F;
  static constexpr std::uint64_t token_stream = 1;  // stream 0 numbers the parameters
  Model model_;
  std::int64_t batch_, local_, first_;
  bool repeat_;
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<InputSource> make_inputs(const Model& model, const Settings& settings, const Layout& layout,
                                         const Coordinates& at, std::uint64_t seed) {
  return std::make_unique<TokenSource>(model, settings, layout, at, seed);
}

}  // namespace harness
