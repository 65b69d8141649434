#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <ostream>

#include "analysis/summary.h"
#include "backend/backend.h"
#include "backends/backends.h"
#include "base/error.h"
#include "cli/verbs.h"
#include "config/recorded.h"
#include "launch/require_gpus.h"
#include "plan/prepare.h"
#include "report/show.h"
#include "store/result_file.h"
#include "sweep/sweep.h"

namespace harness::cli {
namespace {

std::string replace(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::string output_path(const config::Experiment& experiment, const std::string& given) {
  const std::time_t t = std::time(nullptr);
  char date[32];
  std::strftime(date, sizeof date, "%Y%m%d-%H%M%S", std::localtime(&t));
  return replace(replace(given.empty() ? experiment.output : given, "{name}", experiment.name), "{date}", date);
}

// Before anything expensive runs. A disk may still fill up later.
void require_writable_folder(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::filesystem::path folder = parent.empty() ? "." : parent;
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) fail("cannot make the directory {} for the result file: {}", folder.string(), failed.message());
  if (access(folder.c_str(), W_OK) != 0)
    fail("cannot write in the directory {}: {}. -o names another file", folder.string(), std::strerror(errno));
}

void check_output(const std::string& path, const SweepOptions& options) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  const bool exists = std::filesystem::exists(status);
  if (error && status.type() != std::filesystem::file_type::not_found) {
    fail("{} cannot be the result file: {}; -o names another", path, error.message());
  }
  if (options.resume && !exists) fail("{} does not exist, so there is nothing to resume", path);
  if (exists && !options.resume && !options.force) {
    fail("{} exists: --resume continues it if it was interrupted, --force overwrites it, -o names another file", path);
  }
  if (!options.resume) require_writable_folder(path);
}

// What the sweep that made a file was told, for --resume without a configuration. The file's cases are the selection.
config::Experiment take_recorded(const SweepOptions& options, const std::string& path, std::vector<std::string>& only) {
  if (!options.overrides.empty() || !options.only.empty())
    fail("--resume FILE takes the configuration from the file, so --set, --only and their like cannot change it");
  if (!std::filesystem::exists(path)) fail("{} does not exist, so there is nothing to resume", path);
  const store::Result earlier = store::read_result(path, {.rank_seconds = false, .timeline = false});
  only.clear();
  for (const store::ResultCase& row : earlier.cases) only.push_back(row.name);
  return config::load_recorded(earlier.config_text, earlier.config_path, earlier.overrides);
}

// As much as a script must know: whether to come back.
constexpr int exit_partial = 5;

}  // namespace

int sweep(launch::Job& job, const SweepOptions& options, std::ostream& out, std::ostream& err) {
  if (options.resume && options.output.empty()) fail("--resume needs the file to continue: --resume FILE");
  if (!options.resume && options.config.empty()) fail("sweep needs a configuration, such as configs/laptop.yaml");
  if (options.resume && options.force) fail("--resume and --force contradict each other");
  std::vector<std::string> only = options.only;
  const config::Experiment experiment = options.config.empty()
                                            ? take_recorded(options, options.output, only)
                                            : config::load_experiment(options.config, options.overrides);
  static_cast<void>(backends::get(experiment.backend));  // an Error here says what is missing
  if (experiment.backend == config::BackendKind::cuda) {
    launch::require_gpus(job.places(), experiment.measure.share_gpus, experiment.path);
  }
  plan::Plan plan = plan::prepare(experiment, backend::declared_fused(experiment.backend), job.size(), only);
  const std::string path = output_path(experiment, options.output);
  check_output(path, options);

  sweep::ProgressLine progress(err, isatty(STDERR_FILENO) != 0);
  progress.say(fmt::format("{}: {} ranks on {} node(s), backend {}, {} cases, {} rounds → {}", experiment.name,
                           job.size(), job.places().back().node + 1, config::name_of(experiment.backend),
                           plan.cases.size(), experiment.measure.rounds, path));
  const sweep::SweepRequest request{path, options.command, options.wrap, options.force, options.resume};
  const store::RunState state = sweep::run_sweep(job, std::move(plan), request, progress);

  const store::Result result = store::read_result(path, {.rank_seconds = false, .timeline = false});
  const analysis::Summary summary = analysis::summarise(result);
  err << "\n";
  out << report::show(result, summary, report::Format::text);
  out << fmt::format("\nresult file: {}\n", path);
  if (state == store::RunState::partial) {
    err << fmt::format("harness: stopped early; `harness sweep --resume {}`, started on as many ranks, continues\n",
                       path);
    return exit_partial;
  }
  return analysis::exit_code(summary);
}

}  // namespace harness::cli
