#include "cli/sweep_doctor.h"

#include "base/error.h"
#include "config/backend.h"
#include "config/environment.h"
#include "doctor/examine.h"
#include "doctor/record.h"

namespace harness::cli {
namespace {

doctor::SweepToJudge sweep_of(const plan::Plan& plan) {
  doctor::SweepToJudge sweep;
  sweep.uses_gpus = config::traits_of(plan.experiment.backend).ranks_are_gpus;
  sweep.shares_gpus = plan.experiment.measure.share_gpus;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    if (plan.cases[i].is_possible())
      sweep.cases.emplace_back(static_cast<std::int32_t>(i), config::environment_of(plan.cases[i].settings));
  }
  return sweep;
}

}  // namespace

store::DoctorRecord examine_nodes(job::Job& job, const plan::Plan& plan, const DoctorInSweep& how,
                                  sweep::ProgressLine& progress) {
  if (config::traits_of(plan.experiment.backend).predicts()) return {};
  store::DoctorRecord record;
  try {
    const doctor::SweepToJudge sweep = sweep_of(plan);
    const double limit_s = how.require_healthy ? doctor::node_limit_s : doctor::limit_in_a_sweep_s;
    record = doctor::record_of(doctor::examine(job, {how.sysroot, limit_s, sweep.uses_gpus}), sweep);
  } catch (const job::PeersLost&) {
    throw;
  } catch (const Error& error) {
    if (how.require_healthy) throw;
    progress.say(fmt::format("doctor could not look at the nodes: {}", error.what()));
    return {};
  }
  if (const std::string unproven = doctor::not_healthy_in_words(record); how.require_healthy && !unproven.empty()) {
    constexpr int unhealthy = 2;  // as of `harness doctor`
    throw Error(fmt::format("nothing was measured: --require healthy, and doctor finds that\n{}repair it, leave the "
                            "node out, or measure without --require",
                            unproven),
                unhealthy);
  }
  const std::string failures = doctor::failures_in_words(record);
  if (failures.empty()) return record;
  progress.say("doctor: " + failures.substr(0, failures.size() - 1));
  return record;
}

}  // namespace harness::cli
