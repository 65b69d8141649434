#include "plan/survey.h"

#include "base/error.h"
#include "plan/plan.h"
#include "program/verify.h"

namespace harness::plan {

Survey survey(const config::Model& model, config::BackendKind backend, const PlannedCase& the_case) {
  const program::ProgramSet set = program::lower(workloads::build_programs(model, the_case.settings, the_case.layout),
                                                 config::fused_for(backend, the_case.settings));
  if (const auto problems = program::verify(set, 5); !problems.empty()) {
    std::string text = fmt::format("case {}: its program is invalid, which is a bug in the workload; please report it:",
                                   the_case.name);
    for (const auto& p : problems) text += "\n  " + p.text;
    throw Error(text);
  }
  Survey s;
  s.program_hash = program::hash(set);
  s.roles = static_cast<std::int64_t>(set.roles.size());
  s.role_axes = set.role_axes;
  const workloads::Workload& workload = workloads::workload_of(the_case.settings);
  s.tokens_per_step = static_cast<double>(workload.tokens_per_step(model, the_case.settings, the_case.layout));
  s.rate = workload.rate(the_case.settings, the_case.layout);
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

}  // namespace harness::plan
