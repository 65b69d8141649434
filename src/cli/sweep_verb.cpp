#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <memory>
#include <ostream>
#include <utility>

#include "analysis/cases.h"
#include "analysis/estimator.h"
#include "analysis/summary.h"
#include "backends/backends.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/plan.h"
#include "cli/verbs.h"
#include "config/backend.h"
#include "config/fields.h"
#include "config/registry.h"
#include "doctor/facts.h"
#include "doctor/record.h"
#include "job/sim/simulated_job.h"
#include "report/sections.h"
#include "store/atomic_file.h"
#include "store/hdf5_file.h"
#include "store/lock.h"
#include "store/result_file.h"
#include "sweep/probe.h"
#include "sweep/recorder.h"
#include "sweep/sweep.h"

namespace harness::cli {
namespace {

// 5 tells a script only that the sweep was stopped and can be resumed.
constexpr int exit_partial = 5;

struct Orders {
  config::Experiment experiment;
  std::vector<std::string> only;
  plan::Processes processes = plan::Processes::as_needed;
};

// Restores the configuration and the cases of the sweep that --resume continues.
Orders recorded_orders(const SweepOptions& options, int ranks) {
  const std::string& path = options.resume;
  if (!options.config.empty() || !options.output.empty() || options.force)
    fail("--resume FILE continues that file by what it says: leave out the configuration, -o and --force");
  if (!options.overrides.empty() || !options.only.empty())
    fail("--resume FILE takes the configuration from the file, so --set, --only and their like cannot change it");
  if (!std::filesystem::exists(path)) fail("{} does not exist, so there is nothing to resume", path);
  const store::Result earlier = store::read_result(path, {.rank_seconds = false, .timeline = false});
  if (config::traits_of(earlier.backend).predicts())
    fail("{} is a prediction, which takes seconds: run it again with --force instead of --resume", path);
  if (options.rounds.empty()) sweep::require_resumable(earlier, path);
  sweep::require_same_ranks(earlier, ranks, path);  // on other ranks there may not even be a plan
  Orders orders;
  orders.experiment = config::load_experiment(earlier.config_path, earlier.overrides, earlier.config_text);
  orders.only = analysis::names_to_choose(earlier);
  if (!analysis::shares_processes(earlier)) orders.processes = plan::Processes::one_per_block;
  const auto rounds = [](std::string_view text) {
    return static_cast<int>(config::parse_within(text, 2, analysis::most_declared_rounds));
  };
  orders.experiment.measure.rounds =
      options.rounds.empty() ? earlier.rounds : option_value("--rounds", options.rounds, rounds);
  return orders;
}

Orders orders_of(const SweepOptions& options, int ranks) {
  Orders orders;
  if (!options.resume.empty()) {
    orders = recorded_orders(options, ranks);
  } else {
    if (options.config.empty())
      fail("sweep needs a configuration, such as configs/laptop.yaml{}",
           options.only.empty() ? "" : "; give it before --only, which takes every word behind it");
    orders.experiment = config::load_experiment(options.config, options.overrides);
    orders.only = full_names(options.only, orders.experiment.changes, config::case_name);
  }
  if (!options.wrap.empty()) orders.processes = plan::Processes::one_per_block;  // it must see one block per process
  return orders;
}

sweep::ProgressLine progress_line(const SweepOptions& options, std::ostream& err) {
  using enum sweep::ProgressStyle;
  if (options.quiet || options.verbose) return {err, options.quiet ? none : blocks};
  const auto columns = columns_of_terminal(STDERR_FILENO);
  return {err, columns ? bar : rounds, columns.value_or(0)};
}

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

void check_place(const std::string& path, const SweepOptions& options) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error && status.type() != std::filesystem::file_type::not_found) {
    fail("{} cannot be the result file: {}; -o names another", path, error.message());
  }
  if (path == "-") fail("a result file cannot go to standard output; -o names a file, and `show` prints it");
  if (std::filesystem::is_directory(status)) fail("{} is a directory; -o names a result file: {}/NAME.h5", path, path);
  if (options.resume.empty()) static_cast<void>(store::AtomicFile(path, true));  // throws if no file can be put there
}

void check_output(const std::string& path, const SweepOptions& options, const plan::Plan& plan) {
  if (!options.resume.empty()) return;
  const bool predicts = config::traits_of(plan.experiment.backend).predicts();
  const bool exists = std::filesystem::exists(path);
  if (exists && std::filesystem::file_size(path) > 0 && !store::hdf5::File::is_hdf5(path))
    fail("{} exists and is no result file: -o names another file", path);
  if (!options.force && exists)
    fail("{} exists: {}--force replaces it, -o names another file", path,
         predicts ? "" : "--resume continues it if it was interrupted, ");
  store::require_space(path, sweep::needed_space(plan));
}

// Where the result goes: `given` or the experiment's template, with {name} and {date} filled in.
std::string output_path(const config::Experiment& experiment, const std::string& given) {
  const std::time_t t = std::time(nullptr);
  char date[32];
  std::strftime(date, sizeof date, "%Y%m%d-%H%M%S", std::localtime(&t));
  const std::string& path = given.empty() ? experiment.output : given;
  return replaced_all(replaced_all(path, "{name}", experiment.name), "{date}", date);
}

// Throws Error if this build lacks the backend of --backend. Otherwise the many keys that another backend does not
// honour would hide the cause.
void require_named_backend(const std::vector<std::string>& overrides) {
  constexpr std::string_view key = "backend=";
  for (const std::string& text : overrides) {
    if (!text.starts_with(key)) continue;
    const config::BackendKind kind = option_value("--set backend", text.substr(key.size()), config::parse_backend);
    if (!config::traits_of(kind).predicts()) static_cast<void>(backends::get(kind));
  }
}

// Creates the job in virtual time that predicts the experiment, on the given number of ranks or the launcher's; nullptr
// if the experiment is measured. Throws Error if the number of ranks is unknown, or if options that only measuring
// supports are set.
std::unique_ptr<job::Job> simulated_job(const job::Job& real, const config::Experiment& experiment,
                                        const SweepOptions& options) {
  if (!config::traits_of(experiment.backend).predicts()) {
    if (options.ranks == 0 && options.ranks_per_node == 0) return nullptr;
    fail(
        "--ranks and --ranks-per-node are for predictions (--backend sim); of a sweep that measures, `mpirun -np N` "
        "says how many ranks there are");
  }
  if (!options.require.empty() || options.sysroot != "/" || !options.wrap.empty())
    fail("a prediction has neither nodes nor workers: leave out --require, --sysroot and --wrap");
  const int ranks = options.ranks > 0 ? options.ranks : real.size();
  if (options.ranks == 0 && ranks == 1)
    fail("{}: a prediction needs the number of ranks that it is for: give --ranks N", experiment.path);
  return std::make_unique<simjob::SimulatedJob>(experiment,
                                                planned_topology(experiment, ranks, options.ranks_per_node));
}

// Locks the file, examines the nodes, prints what will be measured, measures it and reads the result back. Throws Error
// if the file cannot be written or resumed there, or is in use by another sweep.
std::pair<store::RunState, store::Result> measure_sweep(job::Job& job, const plan::Plan& plan, const std::string& path,
                                                        const SweepOptions& options, sweep::ProgressLine& progress) {
  const config::Experiment& experiment = plan.experiment;
  check_place(path, options);
  const std::unique_ptr<store::Lock> lock = store::Lock::take(path);
  check_output(path, options, plan);
  const sweep::SweepRequest request{options.command, options.wrap, !options.resume.empty(), !options.rounds.empty(),
                                    examine_nodes(job, plan, options.sysroot, !options.require.empty(), progress)};
  sweep::SweepOutput place{*lock, options.force};
  try {
    const std::string rounds = config::traits_of(experiment.backend).predicts()
                                   ? ""
                                   : fmt::format(", {}", plural(experiment.measure.rounds, "round"));
    progress.say(fmt::format("{}: {} on {}, backend {}, {}{} → {}", experiment.name, plural(job.size(), "rank"),
                             plural(sweep::topology_of(job.places()).nodes(), "node"),
                             config::name_of(experiment.backend), plural(std::ssize(plan.cases), "case"), rounds,
                             path));
    const store::RunState state = sweep::run_sweep(job, plan, place, request, progress);
    store::Result result = store::read_result(lock->path(), {.timeline = false});
    lock->require();  // otherwise the numbers are those of another sweep
    return {state, std::move(result)};
  } catch (const job::PeersLost& lost) {
    if (!place.has_result) throw;
    throw job::PeersLost(fmt::format("{}; what was measured before is in {}: `{}` continues", lost.what(),
                                     escaped(path), sweep::resume_command(job.size(), path)),
                         exit_partial);
  }
}

}  // namespace

store::DoctorRecord examine_nodes(job::Job& job, const plan::Plan& plan, const std::string& sysroot,
                                  bool require_healthy, sweep::ProgressLine& progress) {
  if (config::traits_of(plan.experiment.backend).predicts()) return {};
  constexpr int unhealthy = 2;  // as in `harness doctor`
  store::DoctorRecord record;
  try {
    const doctor::SweepToJudge sweep = sweep_of(plan);
    const double limit_s = require_healthy ? doctor::node_limit_s : doctor::limit_in_a_sweep_s;
    record = doctor::record_of(doctor::examine(job, {sysroot, limit_s, sweep.uses_gpus}), sweep);
  } catch (const job::PeersLost&) {
    throw;
  } catch (const Error& error) {
    if (require_healthy) throw Error(error.what(), unhealthy);
    progress.warn(fmt::format("doctor could not look at the nodes: {}", error.what()));
    return {};
  }
  if (const std::string unproven = doctor::failures_in_words(record, true); require_healthy && !unproven.empty()) {
    throw Error(fmt::format("nothing was measured: --require healthy, and doctor finds that\n{}repair it, leave the "
                            "node out, or measure without --require",
                            unproven),
                unhealthy);
  }
  const std::string failures = doctor::failures_in_words(record);
  if (failures.empty()) return record;
  progress.warn("doctor: " + failures.substr(0, failures.size() - 1));
  return record;
}

void require_own_code(const plan::Plan& plan, const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || status.st_uid == ::geteuid()) return;
  for (const plan::PlannedCase& c : plan.cases) {
    for (const auto& [name, value] : c.settings.env) {
      if (!config::runs_foreign_code(name)) continue;
      fail(
          "{} belongs to another user, and its env makes the workers run code that lies elsewhere ({}={}): look at it, "
          "then resume a copy of your own",
          path, name, value);
    }
  }
}

plan::Plan plan_sweep(const job::Job& job, const config::Experiment& experiment, const std::vector<std::string>& only,
                      plan::Processes processes) {
  const config::BackendTraits& traits = config::traits_of(experiment.backend);
  if (!traits.predicts()) {
    static_cast<void>(backends::get(experiment.backend));  // throws Error if the backend is missing
    if (traits.ranks_are_gpus) sweep::require_gpus(job.places(), experiment.measure.share_gpus, experiment.path);
  }
  plan::Plan plan = plan::prepare(experiment, job.size(), only, processes, sweep::topology_of(job.places()));
  if (traits.predicts()) leave_out_unpredicted(plan);
  return plan;
}

int sweep(job::Job& job, const SweepOptions& options, std::ostream& out, std::ostream& err) {
  require_named_backend(options.overrides);
  const auto [experiment, only, processes] = orders_of(options, job.size());
  const bool resumes = !options.resume.empty();
  const std::string path = resumes ? options.resume : output_path(experiment, options.output);
  const std::unique_ptr<job::Job> simulated = simulated_job(job, experiment, options);
  job::Job& runs = simulated ? *simulated : job;
  const plan::Plan plan = plan_sweep(runs, experiment, only, processes);
  if (resumes) require_own_code(plan, path);
  sweep::ProgressLine progress = progress_line(options, err);
  const auto [state, result] = measure_sweep(runs, plan, path, options, progress);
  const analysis::Summary summary = analysis::summarise(result);
  progress.finish();
  const auto detail = options.verbose ? report::Detail::full : report::Detail::brief;
  print(report::show_document(result, summary, {}, detail), "text", under_a_launcher, out);
  out << fmt::format("\nresult file: {}\n", escaped(path));
  if (state == store::RunState::partial) {
    const std::string next = simulated ? "run it again with --force"
                                       : fmt::format("`{}` continues", sweep::resume_command(job.size(), path));
    err << fmt::format("harness: stopped early; {}\n", next);
    return exit_partial;
  }
  return analysis::exit_code(summary);
}

}  // namespace harness::cli
