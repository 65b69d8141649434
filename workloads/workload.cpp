#include "workloads/workload.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "workloads/operations.h"

namespace harness::workloads {

std::span<const Workload* const> workloads() {
  static const std::array<const Workload*, 4> all{&gpt_workload(), &collective_workload(), &gemm_workload(),
                                                  &attention_workload()};
  return all;
}

const Workload& workload_of(const config::Settings& settings) {
  const auto found = std::ranges::find(workloads(), settings.workload, &Workload::name);
  if (found == workloads().end()) fail("there is no workload {}", settings.workload);
  return **found;
}

program::ProgramSet build_programs(const config::Model& model, const config::Settings& settings,
                                   const program::Layout& layout) {
  return workload_of(settings).programs(model, settings, layout);
}

std::unique_ptr<program::InputSource> make_inputs(const config::Model& model, const config::Settings& settings,
                                                  const program::Layout& layout, const program::Coordinates& at,
                                                  std::uint64_t seed) {
  return workload_of(settings).inputs(model, settings, layout, at, seed);
}

std::unique_ptr<program::InputSource> Workload::inputs(const config::Model&, const config::Settings&,
                                                       const program::Layout&, const program::Coordinates&,
                                                       std::uint64_t) const {
  return std::make_unique<program::NoInputs>();
}

std::string Workload::flop_formula(const config::Model& /*model*/) const {
  return "2 per multiply-add of the matrix products; causal attention at half";
}

void add_use(std::vector<std::string>& uses, const program::Label& label) {
  std::string use(label.what);
  if (label.phase == program::Phase::forward) use += ", forward";
  if (std::ranges::find(uses, use) == uses.end()) uses.push_back(std::move(use));
}

std::vector<std::string> Workload::values_from_model(const program::ProgramSet&, const config::Settings&) const {
  fail("workload {} takes no values from a model", name());
}

}  // namespace harness::workloads
