#include "sweep/observe.h"

#include "config/environment.h"
#include "nccl/honoured.h"
#include "nccl/log.h"

namespace harness::sweep {
namespace {

void keep_log(NcclObservation& all, std::int32_t case_index, const plan::PlannedCase& planned,
              const job::BlockOutcome& observed_block) {
  std::string log;
  for (std::size_t rank = 0; rank < observed_block.samples.size(); ++rank)
    log += observed_block.of<job::ObserveSamples>(rank).nccl_log + "\n";
  const nccl::Observed observed = nccl::parse_log(log);
  for (const nccl::Call& call : observed.calls) {
    all.calls.push_back({case_index, call.function, call.algorithm, call.protocol, call.bytes, call.calls,
                         call.first_channel, call.last_channel});
  }
  for (const auto& [name, value] : observed.facts) all.facts.push_back({case_index, name, value});
  for (const std::string& text : observed.warnings) all.facts.push_back({case_index, "warning", text});
  const nccl::Compliance compliance = nccl::check_compliance(config::nccl_requests(planned.settings), observed);
  for (const std::string& text : compliance.not_honoured) all.facts.push_back({case_index, "not honoured", text});
  for (const std::string& text : compliance.not_confirmed) all.facts.push_back({case_index, "not confirmed", text});
}

}  // namespace

NcclObservation observe(job::Job& job, const plan::Plan& plan, const BlockDefaults& defaults, ProgressLine& progress) {
  NcclObservation all;
  if (!config::traits_of(plan.experiment.backend).uses_nccl) return all;
  progress.start_phase(plan.cases.size());
  std::int32_t index = -1;
  for (const plan::PlannedCase& planned : plan.cases) {
    ++index;
    if (all.interrupted) break;
    progress.begin("what NCCL does in " + planned.name);
    if (!planned.is_possible() || planned.is_copy || planned.layout.ranks() < 2) {
      progress.skip();
      continue;
    }
    const job::BlockOutcome outcome =
        run_untimed(job, block_request(plan.experiment, planned, job::Observe{}, defaults));
    all.interrupted = stop_wanted(job, outcome);
    progress.end(outcome.ok ? "" : "failed: " + outcome.reason);
    if (outcome.ok) keep_log(all, index, planned, outcome);
  }
  return all;
}

}  // namespace harness::sweep
