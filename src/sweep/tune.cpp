#include "sweep/tune.h"

#include <algorithm>

#include "backend/backend.h"
#include "base/error.h"

namespace harness::sweep {
namespace {

constexpr double tuning_limit_s = 900;  // for one case

// Adds the choices of all ranks and returns the number of new ones. Where several ranks timed the same product, the
// choice of the lowest rank is used by all.
std::size_t keep_new_choices(backend::Tuning& known, const std::vector<job::Samples>& samples) {
  const std::size_t before = known.size();
  for (const job::Samples& s : samples) {
    const NameValues& found = std::get<job::TuneSamples>(s.task).tuning;
    known.insert(found.begin(), found.end());
  }
  return known.size() - before;
}

}  // namespace

TuningOutcome tune(job::Job& job, const plan::Plan& plan, ProgressLine& progress) {
  const config::Experiment& e = plan.experiment;
  // Several ranks on one device would time each other.
  if (!config::traits_of(e.backend).tunes || e.measure.share_gpus) return {};
  backend::Tuning known;
  TuningOutcome result;
  progress.start_phase("tuning", plan.cases.size());
  for (const plan::PlannedCase& planned : plan.cases) {
    if (result.interrupted) break;
    progress.begin("tuning for " + planned.name);
    if (!planned.is_possible() || planned.is_copy) {
      progress.skip();
      continue;
    }
    job::BlockRequest request = block_request(e, planned, job::Tune{}, {{known.begin(), known.end()}, ""});
    request.deadlines.step_s = std::max(request.deadlines.step_s, tuning_limit_s);
    const job::BlockOutcome outcome = run_untimed(job, request);
    result.interrupted = stop_wanted(job, outcome);
    const std::size_t found = keep_new_choices(known, outcome.samples);
    progress.end(outcome.ok ? fmt::format("{} new choices", found) : "failed: " + outcome.reason);
    if (outcome.ok || outcome.stopped) continue;
    result.warnings.push_back("a case was not tuned and uses the library's first choice: " + outcome.reason);
  }
  result.tuning.assign(known.begin(), known.end());
  return result;
}

}  // namespace harness::sweep
