#include "plan/survey.h"

#include "base/error.h"
#include "config/registry.h"
#include "plan/plan.h"
#include "program/verify.h"

namespace harness::plan {
namespace {

// The layout, and all variables but those that only the worker's environment hears of.
std::string settings_of_programs(const PlannedCase& planned) {
  std::string text = program::text_of(planned.layout);
  for (const config::Variable& variable : config::registry()) {
    const bool environment = !variable.environment_name.empty() || variable.free_parts;
    if (!environment) text += fmt::format("|{}", variable.print(planned.settings));
  }
  return text;
}

// The FLOP of attention, over all ranks.
program::Flop attention_flop(const program::ProgramSet& set, bool recomputed) {
  program::Flop sum;
  const double ranks = static_cast<double>(set.layout.ranks()) / static_cast<double>(set.roles.size());
  for (const program::Program& role : set.roles) {
    for (const program::Operation& op : role.step) {
      if (op.label.recomputed != recomputed || program::flop_of(op.action).noncausal == 0 ||
          std::holds_alternative<program::Matmul>(op.action))
        continue;
      const program::Flop flop = program::flop_of(op.action);
      sum.model += ranks * flop.model;
      sum.noncausal += ranks * flop.noncausal;
    }
  }
  return sum;
}

// Facts that follow from the Programs alone.
Survey survey_programs(const program::ProgramSet& set, const std::string& case_name) {
  if (const auto problems = program::verify(set, 5); !problems.empty()) {
    std::string text =
        fmt::format("case {}: its program is invalid, which is a bug in the workload; please report it:", case_name);
    for (const auto& p : problems) text += "\n  " + p.text;
    throw Error(text);
  }
  Survey s;
  s.program_hash = program::hash(set);
  s.roles = static_cast<std::int64_t>(set.roles.size());
  s.role_axes = set.role_axes;
  s.flop = program::total_flop(set);
  s.hardware_flop = s.flop.model + program::total_recomputed_flop(set);
  for (int role = 0; role < s.roles; ++role) {
    const program::Program& program = set.roles[role];
    s.counts.push_back(program::count(set, program, program.step));
    if (const program::Arena arena = program::plan_arena(program); arena.bytes > s.peak_bytes) {
      s.peak_bytes = arena.bytes;
      s.peak_role = role;
    }
  }
  return s;
}

}  // namespace

Survey survey(const config::Model& model, config::BackendKind backend, const PlannedCase& the_case) {
  return Surveyor(model, backend).survey(the_case);
}

Survey Surveyor::survey(const PlannedCase& the_case) {
  const config::Settings& settings = the_case.settings;
  const auto [alike, fresh] = by_settings_.try_emplace(settings_of_programs(the_case));
  Survey& s = alike->second;
  if (!fresh) return s;
  program::ProgramSet set = workloads::build_programs(model_, settings, the_case.layout);
  const program::FusedSet fused = config::fused_for(backend_, settings);
  // Where ranks share a sequence, the Programs have the queries and the keys of a rank alone.
  program::Flop of_others = attention_flop(set, false);
  const int others = settings.context() - 1;
  of_others = {of_others.model * others, of_others.noncausal * others};
  const double again = attention_flop(set, true).model * others;
  const auto [equal, unknown] = by_programs_.try_emplace({program::hash(set), fused});
  if (unknown) equal->second = survey_programs(program::lower(std::move(set), fused), the_case.name);
  s = equal->second;
  s.flop.model += of_others.model;
  s.flop.noncausal += of_others.noncausal;
  s.hardware_flop += of_others.model + again;
  const workloads::Workload& workload = workloads::workload_of(settings);
  s.tokens_per_step = static_cast<double>(workload.tokens_per_step(model_, settings, the_case.layout));
  s.rate = workload.rate(settings, the_case.layout);
  return s;
}

}  // namespace harness::plan
