#include "cli/plan_time.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "analysis/summary.h"
#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "store/result_file.h"

namespace harness::cli {
namespace {

template <class Value>
void compare(const char* what, const Value& measured, const Value& planned, std::vector<std::string>& differences) {
  if (measured != planned) differences.push_back(fmt::format("{} {}, here {}", what, measured, planned));
}

void require_alike(const plan::Plan& plan, const store::Result& earlier, const std::string& like) {
  const config::Experiment& e = plan.experiment;
  std::vector<std::string> differences;
  compare<std::string>("backend", earlier.backend, config::name_of(e.backend), differences);
  compare("ranks", earlier.ranks, plan.ranks, differences);
  const std::string planned_workload(e.baseline.workload);
  std::string workload = planned_workload;  // files that do not say are older than the choice, or hold no case
  if (const store::ResultCase* baseline = earlier.baseline()) workload = earlier.setting(*baseline, "workload");
  if (workload.empty()) workload = "gpt";
  compare("workload", workload, planned_workload, differences);
  if (workload == planned_workload && workload == "gpt") {
    compare<std::int64_t>("layers", earlier.layers, e.model.layers, differences);
    compare<std::int64_t>("hidden", earlier.hidden, e.model.hidden, differences);
    compare<std::int64_t>("heads", earlier.heads, e.model.heads, differences);
    compare<std::int64_t>("vocab", earlier.vocab, e.model.vocab, differences);
    compare<std::int64_t>("sequence", earlier.sequence, e.model.sequence, differences);
  }
  if (differences.empty()) return;
  fail(
      "--like {}: its times say nothing about this plan ({}); give a result with the same backend, workload, model and "
      "number of ranks, or leave --like out",
      quote(like), join(differences, "; "));
}

// By case: a block's set-up and all of its steps.
std::map<std::string, double> block_seconds(const store::Result& earlier, const config::Measure& measure) {
  std::map<std::string, double> seconds;
  for (const analysis::CaseSummary& c : analysis::summarise(earlier).cases) {
    double setup = 0;
    int n = 0;
    for (const store::ResultBlock& b : earlier.blocks) {
      if (b.case_index != c.case_index || b.status != store::BlockStatus::ok) continue;
      setup += b.setup_s;
      ++n;
    }
    if (n > 0) seconds[c.name] = setup / n + c.step_seconds * (measure.warmup_steps + measure.steps);
  }
  return seconds;
}

}  // namespace

std::string time_text(const plan::Plan& plan, const std::string& like) {
  if (like.empty()) {
    return "\ntime: unknown before the first sweep; --like RESULT.h5 estimates it from an earlier result\n";
  }
  const store::Result earlier = store::read_result(like, {.rank_seconds = false, .timeline = false});
  require_alike(plan, earlier, like);
  const std::map<std::string, double> known = block_seconds(earlier, plan.experiment.measure);
  double total = 0;
  int unknown = 0;
  for (const plan::Slot& slot : plan.schedule) {
    const auto it = known.find(plan.cases[slot.case_index].name);
    if (it == known.end()) {
      ++unknown;
    } else {
      total += it->second;
    }
  }
  return fmt::format("\ntime: {}, estimated from {}{}\n", show_seconds(total), like,
                     unknown > 0 ? fmt::format(", without {} blocks of cases that it does not contain", unknown) : "");
}

}  // namespace harness::cli
