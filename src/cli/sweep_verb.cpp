#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <ostream>

#include "analysis/summary.h"
#include "backend/backend.h"
#include "base/error.h"
#include "cli/verbs.h"
#include "launch/gpu_check.h"
#include "plan/prepare.h"
#include "report/show.h"
#include "store/result_file.h"
#include "sweep/sweep.h"

namespace harness {
namespace {

std::string replace(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::string output_path(const Experiment& experiment, const std::string& given) {
  const std::time_t t = std::time(nullptr);
  char date[32];
  std::strftime(date, sizeof date, "%Y%m%d-%H%M%S", std::localtime(&t));
  return replace(replace(given.empty() ? experiment.output : given, "{name}", experiment.name), "{date}", date);
}

void check_output(const std::string& path, const SweepOptions& options) {
  const bool exists = std::filesystem::exists(path);
  if (options.resume && !exists) fail("{} does not exist: nothing to resume", path);
  if (exists && !options.resume && !options.force) {
    fail("{} exists: --resume goes on with it if it was interrupted, --force overwrites it, -o names another file",
         path);
  }
}

}  // namespace

int sweep(Job& job, const SweepOptions& options, std::ostream& out, std::ostream& err) {
  if (options.resume && options.output.empty()) fail("--resume needs the file to go on with: -o FILE");
  if (options.resume && options.force) fail("--resume and --force contradict each other");
  const Experiment experiment = load_experiment(options.config, options.overrides);
  static_cast<void>(backend(experiment.backend));  // an Error here says what is missing
  if (experiment.backend == BackendKind::cuda) {
    const std::string trouble = check_gpus(job.places(), experiment.measure.share_gpus, options.config);
    if (!trouble.empty()) throw Error(trouble);
  }
  Plan plan = prepare(experiment, declared_fused(experiment.backend), job.size(), options.only);
  const std::string path = output_path(experiment, options.output);
  check_output(path, options);

  ProgressLine progress(err, isatty(STDERR_FILENO) != 0);
  progress.say(fmt::format("{}: {} ranks on {} node(s), backend {}, {} cases, {} rounds → {}", experiment.name,
                           job.size(), job.places().back().node + 1, name_of(experiment.backend), plan.cases.size(),
                           experiment.measure.rounds, path));
  const SweepRequest request{path, options.command, options.wrap, options.force, options.resume};
  const RunState state = run_sweep(job, std::move(plan), request, progress);

  const Result result = read_result(path, {.rank_seconds = false, .timeline = false});
  const Summary summary = summarise(result);
  err << "\n";
  out << show(result, summary, Format::text);
  out << fmt::format("\nresult file: {}\n", path);
  if (state == RunState::partial) {
    err << fmt::format("harness: stopped early; `harness sweep {} --resume -o {}` goes on\n", options.config, path);
  }
  return exit_code(summary);
}

}  // namespace harness
