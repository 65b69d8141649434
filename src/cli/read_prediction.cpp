#include "cli/read_prediction.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "cli/predicted.h"
#include "evidence/lines.h"
#include "plan/fit.h"
#include "plan/prepare.h"

namespace harness::cli {
namespace {

using evidence::Answer;
using evidence::seconds_text;

template <class Type>
std::optional<Type> fact_of(const Answer& answer, std::string_view key) {
  for (const auto& [name, value] : answer.facts) {
    if (name == key && std::holds_alternative<Type>(value)) return std::get<Type>(value);
  }
  return std::nullopt;
}

// The shares of the step, for people.
std::string parts_text(const program::StepSplit& split) {
  return fmt::format("{} computation, {} communication that nothing covers, {} neither", seconds_text(split.compute_s),
                     seconds_text(split.exposed_s), seconds_text(split.idle_s));
}

// Sets the measured step beside the predicted one.
void judge(Answer& log, const std::vector<Answer>& answers, double measured, const PredictedCase& predicted) {
  const double ratio = measured / predicted.step->step_s;
  constexpr double as_predicted = 1.25, faster = 0.8;  // no less than what predictions of published steps err by
  if (ratio < faster) {
    log.evidence.emplace_back("beside it",
                              fmt::format("the measured step takes {:.2f} of that: check what a step is", ratio));
    return;
  }
  if (ratio <= as_predicted) {
    log.headline += "; normal: as predicted";
    log.evidence.emplace_back("beside it", fmt::format("{:.2f} times the predicted step: normal", ratio));
    return;
  }
  const double lost = measured - predicted.step->step_s;
  log.headline += fmt::format("; {:.1f} times the predicted step", ratio);
  log.evidence.emplace_back("lost",
                            fmt::format("{} of each step, {} of it", seconds_text(lost), percent(lost / measured, 0)));
  const auto cause = std::ranges::find_if(answers, [&](const Answer& answer) {
    return &answer != &log && answer.object == "nccl" && !answer.problems.empty();
  });
  if (cause != answers.end()) {
    log.problems.insert(log.problems.begin(),
                        fmt::format("the step is {:.1f} times the predicted one, and the NCCL log names a cause: {}",
                                    ratio, cause->problems.front()));
    log.headline += ": " + cause->headline;
    if (!cause->next.empty()) log.next = cause->next;
  } else {
    log.problems.push_back(fmt::format(
        "the step is {:.1f} times the predicted one: an NCCL log (NCCL_DEBUG=INFO) beside it may name the cause",
        ratio));
  }
}

}  // namespace

void add_prediction(std::vector<Answer>& answers) {
  const auto job = std::ranges::find_if(answers, [](const Answer& answer) { return !answer.configuration.empty(); });
  if (job == answers.end()) return;
  const auto ranks = fact_of<std::int64_t>(*job, "ranks");
  constexpr std::int64_t most = 4096;  // more take longer than a person waits for an answer
  if (!ranks || *ranks > most) return;
  const auto log = std::ranges::find(answers, "log", &Answer::object);
  const auto measured = log == answers.end() ? std::nullopt : fact_of<double>(*log, "step_time_s");
  Answer& to = measured ? *log : *job;
  try {
    std::vector<std::string> overrides{"backend=sim", "memory_cap=1000 %"};
    if (!job->calibration.empty()) overrides.push_back("calibration=" + job->calibration);
    const config::Experiment experiment = config::load_recorded(job->configuration, "job.yaml", overrides);
    if (!experiment.hardware) {
      to.notes.emplace_back("what the step should take needs the GPU: --set hardware=h100-sxm");
      return;
    }
    const auto count = static_cast<int>(*ranks);
    const auto each = fact_of<std::int64_t>(*job, "ranks_per_node");
    const plan::Plan plan = plan::prepare(experiment, count, {}, plan::Processes::as_needed,
                                          planned_topology(experiment, count, static_cast<int>(each.value_or(0))));
    const PredictedCase predicted = Predictor(plan)(plan.baseline());
    if (!predicted.step) fail("{}", predicted.unknown);
    const double needed = plan::planned_memory_bytes(experiment.backend, plan.baseline());
    if (needed > experiment.hardware->memory_bytes)
      to.notes.push_back(
          fmt::format("harness's own step of this job would need {} per rank, and the GPU has {}: the job keeps less",
                      show_bytes(needed), show_bytes(experiment.hardware->memory_bytes)));
    const double seconds = predicted.step->step_s;
    to.facts.emplace_back("predicted_step_s", seconds);
    to.evidence.emplace_back("predicted",
                             fmt::format("{}{} (simulated for {}; expected error {})", seconds_text(seconds),
                                         predicted.mfu ? fmt::format(", MFU {}", percent(*predicted.mfu)) : "",
                                         experiment.hardware->file, predicted.trust.error_words));
    to.evidence.emplace_back("of which", parts_text(predicted.step->split));
    if (measured) judge(*log, answers, *measured, predicted);
  } catch (const Error& error) {
    to.notes.push_back(fmt::format("no prediction: {}", error.what()));
  }
}

}  // namespace harness::cli
