#include "workloads/workload.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "workloads/operations.h"

namespace harness {

std::span<const Workload* const> workloads() {
  static const std::array<const Workload*, 4> all{&gpt_workload(), &collective_workload(), &gemm_workload(),
                                                  &attention_workload()};
  return all;
}

const Workload& workload_of(const Settings& settings) {
  const auto found = std::ranges::find(workloads(), settings.workload, &Workload::name);
  if (found == workloads().end()) fail("there is no workload {}", settings.workload);
  return **found;
}

ProgramSet build_programs(const Model& model, const Settings& settings, const Layout& layout) {
  return workload_of(settings).programs(model, settings, layout);
}

std::unique_ptr<InputSource> make_inputs(const Model& model, const Settings& settings, const Layout& layout,
                                         const Coordinates& at, std::uint64_t seed) {
  return workload_of(settings).inputs(model, settings, layout, at, seed);
}

namespace {

class NoInputs : public InputSource {
 public:
  void fill(const std::string& buffer, std::int64_t /*step*/, std::span<std::byte> /*to*/) const override {
    fail("input buffer {} has no source", buffer);
  }
};

}  // namespace

std::string Workload::why_impossible(const Model&, const Settings&) const {
  return "";
}
std::string Workload::why_impossible_on(const Model&, const Settings&, const Layout&) const {
  return "";
}
std::unique_ptr<InputSource> Workload::inputs(const Model&, const Settings&, const Layout&, const Coordinates&,
                                              std::uint64_t) const {
  return std::make_unique<NoInputs>();
}
std::unique_ptr<OutputCheck> Workload::output_check(const Settings&, const Layout&, const Coordinates&,
                                                    const Program&) const {
  return nullptr;
}
Rate Workload::rate(const Settings&, const Layout&) const {
  return {};
}
std::int64_t Workload::tokens_per_step(const Model&, const Settings&) const {
  return 0;
}
std::int64_t Workload::micro_batches(const Settings&, const Layout&) const {
  return 0;
}
std::string Workload::flop_formula() const {
  return "2 per multiply-add of the matrix products; causal attention at half";
}
std::vector<std::string> Workload::values_from_model(const ProgramSet&, const Settings&) const {
  fail("workload {} takes no values from a model", name());
}

}  // namespace harness
