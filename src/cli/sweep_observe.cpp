#include <algorithm>

#include "base/units.h"
#include "cli/sweep_run.h"
#include "cli/tuning_cache.h"
#include "config/case_environment.h"
#include "nccl/honoured.h"

namespace harness {
namespace {

constexpr double tuning_limit_s = 900;  // for one case's products

}  // namespace

void SweepRun::tune() {
  const Experiment& e = prepared_.plan.experiment;
  // Several ranks on one device would time each other.
  if (e.backend != BackendKind::cuda || e.measure.share_gpus) return;
  const TuningCache cache(value_of(result_.identity, "device"), value_of(result_.identity, "cublaslt"));
  Tuning known = cache.read();
  const std::size_t remembered = known.size();
  const int n = static_cast<int>(prepared_.plan.cases.size());
  for (int i = 0; i < n && !interrupted_; ++i) {
    if (!prepared_.plan.cases[static_cast<std::size_t>(i)].impossible.empty() || i == 1) continue;
    progress_.begin(i, n, "tuning for " + prepared_.plan.cases[static_cast<std::size_t>(i)].name);
    result_.tuning.assign(known.begin(), known.end());
    BlockRequest wanted = request(i, BlockMode::tuning);
    wanted.deadlines.step_s = std::max(wanted.deadlines.step_s, tuning_limit_s);
    const BlockOutcome outcome = job_.run(wanted);
    interrupted_ = outcome.stopped || job_.stop_requests() > 0;
    // The lowest rank's choice counts where several timed the same product: all ranks must do alike.
    std::size_t found = 0;
    for (const BlockSamples& s : outcome.samples) {
      for (const auto& [key, choice] : s.tuning) found += known.emplace(key, choice).second;
    }
    progress_.end(outcome.ok ? std::to_string(found) + " products timed" : "failed: " + outcome.reason);
    if (!outcome.ok && !outcome.stopped)
      warn("a case was not tuned and uses the library's first choice: " + outcome.reason);
  }
  result_.tuning.assign(known.begin(), known.end());
  if (known.size() > remembered) {
    if (const std::string problem = cache.write(known); !problem.empty()) warn(problem);
  }
}

void SweepRun::observe() {
  if (prepared_.plan.experiment.backend != BackendKind::cuda) return;
  const int n = static_cast<int>(prepared_.plan.cases.size());
  for (int i = 0; i < n && !interrupted_; ++i) {
    const Case& c = prepared_.plan.cases[static_cast<std::size_t>(i)];
    if (!c.impossible.empty() || i == 1 || c.layout.ranks() < 2) continue;
    progress_.begin(i, n, "what NCCL does in " + c.name);
    const BlockOutcome outcome = run(i, BlockMode::observe);
    interrupted_ = outcome.stopped || job_.stop_requests() > 0;
    progress_.end(outcome.ok ? "" : "failed: " + outcome.reason);
    if (outcome.ok) keep_observation(i, outcome);
  }
}

void SweepRun::keep_observation(int case_index, const BlockOutcome& outcome) {
  std::string log;
  for (const BlockSamples& s : outcome.samples) log += s.nccl_log + "\n";
  const nccl::Observed observed = nccl::parse_log(log);
  for (const nccl::Call& call : observed.calls) {
    result_.nccl_calls.push_back({case_index, call.function, call.algorithm, call.protocol, call.bytes, call.calls,
                                  call.first_channel, call.last_channel});
  }
  const auto keep = [&](const std::string& name, const std::string& value) {
    result_.nccl_facts.push_back({case_index, name, value});
  };
  for (const auto& [name, value] : observed.facts) keep(name, value);
  for (const std::string& text : observed.warnings) keep("warning", text);
  const Case& c = prepared_.plan.cases[static_cast<std::size_t>(case_index)];
  const nccl::Compliance compliance = nccl::check_compliance(nccl_requests(c.settings), observed);
  for (const std::string& text : compliance.not_honoured) keep("not honoured", text);
  for (const std::string& text : compliance.not_confirmed) keep("not confirmed", text);
}

}  // namespace harness
