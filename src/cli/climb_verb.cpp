#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "analysis/summary.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/one_sweep.h"
#include "cli/view.h"
#include "config/fields.h"
#include "report/show.h"
#include "store/result_file.h"
#include "sweep/climb.h"

namespace harness::cli {
namespace {

// runs/a.h5 → runs/a.2.h5
std::string path_of_stage(const std::string& path, int stage) {
  const std::filesystem::path whole(path);
  return (whole.parent_path() / fmt::format("{}.{}{}", whole.stem().string(), stage, whole.extension().string()))
      .string();
}

std::optional<store::RunState> state_of(const std::string& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  return store::read_result(path, {.rank_seconds = false, .timeline = false}).state;
}

// What the climb is, before it begins: how many stages within how many blocks.
struct Budget {
  std::size_t blocks = 0;
  int stages = 1;
};

Budget budget_of(const SweepOptions& options, std::size_t first_stage, int variables) {
  // Each variable may be changed once, and the last stage finds nothing more.
  Budget budget{first_stage * static_cast<std::size_t>(variables + 1), variables + 1};
  if (options.blocks.empty()) return budget;
  budget.blocks = static_cast<std::size_t>(config::parse_within(options.blocks, 1, 10'000'000));
  if (budget.blocks < first_stage)
    fail("--blocks {}: the first stage alone has {} blocks; give as many or more, or fewer --rounds", budget.blocks,
         first_stage);
  budget.stages = static_cast<int>(budget.blocks / first_stage);
  return budget;
}

}  // namespace

int climb(job::Job& job, const SweepOptions& options, std::ostream& out, std::ostream& err) {
  if (options.config.empty()) fail("--climb needs a configuration, such as configs/laptop.yaml");
  if (options.resume && options.output.empty()) fail("--climb --resume needs -o FILE, as it was given to the climb");
  const config::Experiment start = config::load_experiment(options.config, options.overrides);
  const int variables = sweep::Climb(start, options.only, 1).variables();
  const std::unique_ptr<job::Job> simulated = simulated_job(job, start, options);
  job::Job& runs = simulated ? *simulated : job;
  const std::size_t first_stage =
      plan_sweep(runs, start, options.only, processes_for(options.wrap, "")).schedule.size();
  const Budget budget = budget_of(options, first_stage, variables);
  sweep::Climb climb(start, options.only, budget.stages);
  const std::string path = output_path(start, options.output);
  sweep::ProgressLine progress(err, isatty(STDERR_FILENO) != 0);
  const std::string error =
      simulated ? "" : fmt::format(", which share the error of {:.3g} %", 100 * (1 - start.measure.confidence));
  progress.say(fmt::format("climb: up to {} within {}{}", plural(budget.stages, "stage"),
                           plural(static_cast<std::int64_t>(budget.blocks), "block"), error));
  std::string ended;
  std::size_t used = 0;
  int code = 0;
  for (int stage = 1; ended.empty() && stage <= budget.stages; ++stage) {
    std::vector<std::string> overrides = options.overrides;
    for (std::string& text : climb.overrides()) overrides.push_back(std::move(text));
    const config::Experiment experiment = config::load_experiment(options.config, overrides);
    const std::string file = path_of_stage(path, stage);
    const auto found = options.resume ? state_of(file) : std::nullopt;
    const plan::Plan plan = plan_sweep(runs, experiment, {}, processes_for(options.wrap, found ? file : ""));
    used += plan.schedule.size();
    if (used > budget.blocks) {
      ended = fmt::format("the {} blocks are spent", budget.blocks);
      break;
    }
    progress.say(
        fmt::format("climb, stage {}: {}", stage, stage == 1 ? "as configured" : join(climb.settings(), ", ")));
    if (found != store::RunState::complete) {
      const OutputRequest output{file, found.has_value(), options.force};
      const DoctorInSweep look{options.sysroot, !options.require.empty()};
      const sweep::SweepRequest request{options.command, options.wrap, found.has_value(), climb.path()};
      if (measure_sweep(runs, plan, output, request, look, progress).state == store::RunState::partial) {
        err << fmt::format("harness: stopped early; the same command with --resume and -o {} continues\n",
                           shell_word(path));
        return exit_partial;
      }
    }
    const store::Result result = store::read_result(file, {.rank_seconds = false, .timeline = false});
    const analysis::Summary summary = analysis::summarise(result);
    out << view(report::show_document(result, summary), under_a_launcher, out)
        << fmt::format("\nresult file: {}\n\n", file);
    code = analysis::exit_code(summary);
    ended = climb.take(result, summary, file);
  }
  if (ended.empty()) ended = fmt::format("all {} stages are over", budget.stages);
  out << fmt::format("climb: {}, after {}.\n", ended,
                     plural(std::ssize(climb.path()), simulated ? "predicted change" : "proven change"));
  for (const std::string& setting : climb.settings()) out << fmt::format("  --set '{}'\n", setting);
  return code;
}

}  // namespace harness::cli
