#include <unistd.h>

#include <filesystem>
#include <ostream>

#include "analysis/estimator.h"
#include "analysis/summary.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/one_sweep.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "config/experiment.h"
#include "config/fields.h"
#include "report/sections.h"
#include "store/result_file.h"
#include "sweep/resume.h"

namespace harness::cli {
namespace {

// The orders of the sweep that made a file, for --resume without a configuration. The file's cases are the selection.
config::Experiment take_recorded(const SweepOptions& options, int ranks, std::vector<std::string>& only) {
  const std::string& path = options.output;
  if (!options.overrides.empty() || !options.only.empty())
    fail("--resume FILE takes the configuration from the file, so --set, --only and their like cannot change it");
  if (!std::filesystem::exists(path)) fail("{} does not exist, so there is nothing to resume", path);
  const store::Result earlier = store::read_result(path, {.rank_seconds = false, .timeline = false});
  if (config::traits_of(earlier.backend).predicts())
    fail("{} is a prediction, which takes seconds: run it again with --force instead of --resume", path);
  sweep::require_same_ranks(earlier, ranks, path);  // on others there may not even be a plan
  only.clear();
  for (const store::ResultCase& row : earlier.cases) {
    // A setting at another size follows from the size and the setting.
    const bool follows =
        !store::is_reference(row.role()) && earlier.case_at(row.reference).role() == store::CaseRole::point;
    if (!follows) only.push_back(row.name);
  }
  return config::load_recorded(earlier.config_text, earlier.config_path, earlier.overrides);
}

sweep::ProgressLine progress_line(const SweepOptions& options, std::ostream& err) {
  using enum sweep::ProgressStyle;
  if (options.quiet || options.verbose) return {err, options.quiet ? none : blocks};
  const auto columns = columns_of_terminal(STDERR_FILENO);
  return {err, columns ? bar : rounds, columns.value_or(0)};
}

}  // namespace

int sweep(job::Job& job, const SweepOptions& options, std::ostream& out, std::ostream& err) {
  if (options.resume && options.force) fail("--resume and --force contradict each other");
  if (options.resume && options.output.empty()) fail("--resume needs the file to continue: --resume FILE");
  if (!options.resume && options.config.empty()) fail("sweep needs a configuration, such as configs/laptop.yaml");
  if (options.trust_file && !(options.resume && options.config.empty()))
    fail("--trust-file is about a file that is resumed alone: --resume FILE --trust-file");
  require_named_backend(options.overrides);
  std::vector<std::string> only = options.only;
  config::Experiment experiment = options.config.empty() ? take_recorded(options, job.size(), only)
                                                         : config::load_experiment(options.config, options.overrides);
  only = full_names(std::move(only), experiment.changes, config::case_name);
  if (!options.rounds.empty())
    experiment.measure.rounds =
        static_cast<int>(config::parse_within(options.rounds, 2, analysis::most_declared_rounds));
  const std::string path = output_path(experiment, options.output);
  const std::unique_ptr<job::Job> simulated = simulated_job(job, experiment, options);
  job::Job& runs = simulated ? *simulated : job;
  const plan::Plan plan = plan_sweep(runs, experiment, only, processes_for(options.wrap, options.resume ? path : ""));
  const std::string foreign_code = options.config.empty() ? foreign_code_in(plan, path, options.trust_file) : "";
  const OutputRequest output{path, options.resume, options.force,
                             options.rounds.empty() ? 0 : experiment.measure.rounds};

  sweep::ProgressLine progress = progress_line(options, err);
  if (!foreign_code.empty()) progress.warn(foreign_code);
  const auto [state, result] = measure_sweep(runs, plan, output, {options.command, options.wrap, options.resume},
                                             {options.sysroot, !options.require.empty()}, progress);
  const analysis::Summary summary = analysis::summarise(result);
  progress.finish();
  const auto detail = options.verbose ? report::Detail::full : report::Detail::brief;
  out << view(report::show_document(result, summary, {}, detail), under_a_launcher, out);
  out << fmt::format("\nresult file: {}\n", escaped(path));
  if (state == store::RunState::partial && simulated) {
    err << "harness: stopped early; run it again with --force\n";
    return exit_partial;
  }
  if (state == store::RunState::partial) {
    err << fmt::format("harness: stopped early; `{}` continues\n", sweep::resume_command(job.size(), path));
    return exit_partial;
  }
  return analysis::exit_code(summary);
}

}  // namespace harness::cli
