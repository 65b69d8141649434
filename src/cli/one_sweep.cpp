#include "cli/one_sweep.h"

#include <ctime>
#include <filesystem>

#include "backend/backend.h"
#include "backends/backends.h"
#include "base/error.h"
#include "base/text.h"
#include "launch/require_gpus.h"
#include "plan/prepare.h"
#include "store/atomic_file.h"

namespace harness::cli {
namespace {

std::string replace(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

}  // namespace

std::string output_path(const config::Experiment& experiment, const std::string& given) {
  const std::time_t t = std::time(nullptr);
  char date[32];
  std::strftime(date, sizeof date, "%Y%m%d-%H%M%S", std::localtime(&t));
  return replace(replace(given.empty() ? experiment.output : given, "{name}", experiment.name), "{date}", date);
}

plan::Plan plan_sweep(const launch::Job& job, const config::Experiment& experiment,
                      const std::vector<std::string>& only) {
  static_cast<void>(backends::get(experiment.backend));  // an Error here says what is missing
  if (experiment.backend == config::BackendKind::cuda) {
    launch::require_gpus(job.places(), experiment.measure.share_gpus, experiment.path);
  }
  return plan::prepare(experiment, backend::declared_fused(experiment.backend), job.size(), only);
}

void check_output(const std::string& path, bool resume, bool force) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  const bool exists = std::filesystem::exists(status);
  if (error && status.type() != std::filesystem::file_type::not_found) {
    fail("{} cannot be the result file: {}; -o names another", path, error.message());
  }
  if (resume && !exists) fail("{} does not exist, so there is nothing to resume", path);
  if (exists && !resume && !force) {
    fail("{} exists: --resume continues it if it was interrupted, --force overwrites it, -o names another file", path);
  }
  if (!resume) static_cast<void>(store::AtomicFile(path, force));  // throws where a file cannot be put
}

store::RunState measure_sweep(launch::Job& job, plan::Plan plan, const sweep::SweepRequest& request,
                              sweep::ProgressLine& progress) {
  const config::Experiment& experiment = plan.experiment;
  progress.say(fmt::format("{}: {} on {}, backend {}, {}, {} → {}", experiment.name, plural(job.size(), "rank"),
                           plural(job.places().back().node + 1, "node"), config::name_of(experiment.backend),
                           plural(std::ssize(plan.cases), "case"), plural(experiment.measure.rounds, "round"),
                           request.path));
  return sweep::run_sweep(job, std::move(plan), request, progress);
}

}  // namespace harness::cli
