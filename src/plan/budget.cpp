#include "plan/plan.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"
#include "program/builder.h"
#include "program/program.h"
#include "workloads/workload.h"

namespace harness::plan {
namespace {

// Products differ by what they are for; of the other kinds the phase tells enough.
std::string what_of(const program::Operation& op) {
  return std::holds_alternative<program::Matmul>(op.action) ? std::string(op.label.what) : "";
}

Budget budget_of(const program::Program& program, const program::DeviceRates& rates) {
  Budget b;
  b.rates = rates;
  std::map<std::tuple<std::string, std::string, program::Phase, bool>, std::size_t> known;
  const std::vector<char> beside = program::computes_beside_another(program.step, program.streams.size());
  for (std::size_t i = 0; i < program.step.size(); ++i) {
    const program::Operation& op = program.step[i];
    if (program::is_communication(op.action)) continue;
    const std::string kind(program::name_of(op.action));
    const bool again = op.label.recomputed;
    const auto [it, is_new] = known.try_emplace({kind, what_of(op), op.label.phase, again}, b.lines.size());
    if (is_new) b.lines.push_back({.kind = kind, .what = what_of(op), .phase = op.label.phase, .recomputed = again});
    BudgetLine& line = b.lines[it->second];
    const double flop = program::flop_of(op.action).model;
    const double bytes = program::needed_bytes(program, op.action);
    const program::LeastTime least = program::least_time(flop, bytes, rates);
    const double least_s = least.seconds();
    ++line.operations;
    line.flop += flop;
    line.bytes += bytes;
    line.bound = least.bound();
    line.least_s += least_s;
    if (beside[i] != 0 && op.stream != 0) b.least_s -= least_s;  // at best hidden behind the compute stream
    if (!again) b.model_flop += flop;
  }
  for (const BudgetLine& line : b.lines) b.least_s += line.least_s;
  return b;
}

}  // namespace

Budget budget(const config::Model& model, config::BackendKind backend, const PlannedCase& planned,
              const config::Hardware& hardware) {
  if (!planned.is_possible()) fail("case {} is impossible: {}", planned.name, planned.impossible);
  const program::DeviceRates rates{hardware.peak_flops(planned.settings.precision), hardware.memory_bytes_per_s};
  if (!(rates.flops > 0))
    fail("the hardware file {} states no peak for the precision of {}", hardware.name, planned.name);
  if (!(rates.memory_bytes_per_s > 0)) fail("the hardware file {} states no memory_bandwidth", hardware.name);
  const program::ProgramSet set = program::lower(workloads::build_programs(model, planned.settings, planned.layout),
                                                 config::fused_for(backend, planned.settings));
  Budget longest;
  for (std::size_t role = 0; role < set.roles.size(); ++role) {
    Budget b = budget_of(set.roles[role], rates);
    if (role > 0 && b.least_s <= longest.least_s) continue;
    longest = std::move(b);
    longest.role = static_cast<std::int64_t>(role);
  }
  if (!(longest.model_flop > 0)) fail("case {} computes nothing, so it has no budget", planned.name);
  longest.roles = std::ssize(set.roles);
  return longest;
}

}  // namespace harness::plan
