#include "sweep/climb.h"

#include <algorithm>
#include <cmath>

#include "analysis/power.h"
#include "base/error.h"
#include "base/text.h"
#include "config/experiment.h"
#include "config/registry.h"
#include "config/yaml_tree.h"

namespace harness::sweep {
namespace {

constexpr int usual_rounds = 12;  // where too few tell nothing of the scatter

bool is_selected(const config::Change& change, const std::vector<std::string>& only) {
  if (only.empty()) return true;
  return std::ranges::find(only, change.variable) != only.end() ||
         std::ranges::find(only, config::case_name(change)) != only.end();
}

// ", but 3 of 3 are unresolved after 6 rounds: …": what would settle them. "" where every change has its verdict.
std::string what_is_open(const store::Result& result, const analysis::Summary& summary) {
  int changes = 0, open = 0, needed = 0, blocks = 0;
  for (const analysis::CaseSummary& row : summary.cases) {
    if (row.role != store::CaseRole::change || row.blocks == 0) continue;
    ++changes;
    const bool too_few = row.judgement.reason == analysis::Reason::too_few_rounds;
    if (!too_few && !analysis::is_unresolved(row)) continue;
    ++open;
    blocks = std::max(blocks, row.blocks);
    needed = std::max(needed, too_few ? usual_rounds : row.effect->rounds_needed);
  }
  if (open == 0) return "";
  std::string text = fmt::format(", but {} of {} {} unresolved after {}, so this is no answer: ", open,
                                 plural(changes, "change"), open == 1 ? "is" : "are", plural(blocks, "round"));
  if (needed < analysis::max_rounds) return text + fmt::format("about {0} would settle them (--rounds {0})", needed);
  return text +
         fmt::format(
             "more rounds will not settle all of them; use longer blocks (measure.steps), a quieter machine or a "
             "larger smallest_effect than {:.3g} %",
             100 * result.smallest_effect);
}

}  // namespace

Climb::Climb(const config::Experiment& start, const std::vector<std::string>& only, int stages)
    : confidence_(1 - (1 - start.measure.confidence) / stages) {
  for (const config::Change& change : start.changes) {
    if (!is_selected(change, only)) continue;
    if (!change.from_model.empty() || config::is_joint(change.variable))
      fail("--climb changes one variable at a time; remove `{}` from the configuration",
           change.from_model.empty() ? change.variable : change.variable + ": from_model");
    if (config::purpose_of(change.variable) != config::Purpose::setting)
      fail("--climb: {} is no setting that can be improved; leave it out (--only)", change.variable);
    std::vector<std::string>& values = values_[change.variable];
    if (values.empty()) values.push_back(config::find_variable(change.variable)->print(start.baseline));
    values.push_back(change.value);
  }
  if (values_.empty()) fail("--climb: the configuration sweeps nothing; add `sweep`");
}

std::vector<std::string> Climb::settings() const {
  std::vector<std::string> settings;
  for (const auto& [variable, value] : changed_) settings.push_back(fmt::format("baseline.{}={}", variable, value));
  return settings;
}

std::vector<std::string> Climb::overrides() const {
  std::vector<std::string> overrides = settings();
  std::vector<std::string> sweep, start;
  for (const auto& [variable, values] : values_) {
    const auto now = changed_.find(variable);
    const std::string& current = now == changed_.end() ? values[0] : now->second;
    std::vector<std::string> others;
    for (const std::string& value : values) {
      if (value != current) others.push_back(config::yaml_value(value));
    }
    sweep.push_back(fmt::format("{}: [{}]", variable, join(others, ", ")));
    if (current != values[0]) start.push_back(fmt::format("{}: {}", variable, config::yaml_value(values[0])));
  }
  overrides.push_back(fmt::format("sweep={{{}}}", join(sweep, ", ")));
  // One change undone is among the sweep's values already; several at once say what the climb brought as a whole.
  if (start.size() > 1) overrides.push_back(fmt::format("combine=[{{{}}}]", join(start, ", ")));
  overrides.push_back(fmt::format("measure.confidence={}", confidence_));
  return overrides;
}

std::string Climb::take(const store::Result& result, const analysis::Summary& summary, const std::string& path) {
  if (summary.unreliable) return "the control moved, so this stage proves nothing";
  const bool predicted = analysis::is_predicted(summary);
  const std::vector<const analysis::CaseSummary*> better =
      predicted ? summary.predicted_changes() : summary.proven_changes();
  const auto single = [&](const analysis::CaseSummary* row) {
    return row->status == store::CaseStatus::ok && !config::is_joint(result.at(*row).variable);
  };
  const auto best = std::ranges::find_if(better, single);
  if (best == better.end() && predicted) return "no single change is predicted to help";
  if (best == better.end()) return "no single change is proven to help" + what_is_open(result, summary);
  const store::ResultCase& changed = result.at(**best);
  const analysis::Effect& effect = *(*best)->effect;
  store::ResultStage stage;
  stage.change = changed.name;
  stage.was = std::string(result.setting(*result.baseline(), changed.variable));
  stage.ratio = effect.ratio;
  stage.low = effect.low;
  stage.high = effect.high;
  const analysis::CaseSummary* baseline = summary.baseline();
  stage.step_seconds = baseline->step_seconds;
  stage.tokens_per_second = baseline->tokens_per_second;
  if (baseline->mfu) stage.mfu = *baseline->mfu;
  stage.run_uuid = result.run_uuid;
  stage.path = path;
  path_.push_back(std::move(stage));
  changed_[changed.variable] = changed.value;
  return "";
}

}  // namespace harness::sweep
