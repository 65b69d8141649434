#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "config/experiment.h"
#include "job/job.h"
#include "machine/gpus.h"
#include "plan/plan.h"
#include "store/result.h"
#include "sweep/progress.h"

namespace harness::cli {

struct SweepOptions {
  std::string config;                  // "" with --resume, which takes it from the file
  std::string output;                  // -o; "" uses the configuration's template
  std::vector<std::string> overrides;  // --set, --rounds … as key=value
  std::vector<std::string> only;
  std::string wrap;     // a command that starts the timed workers
  std::string command;  // as it was typed, for the result file
  bool force = false;
  std::string resume = {};            // the file to continue; "": none
  std::string rounds = {};            // with --resume: the new total number of rounds of a complete file
  int ranks = 0, ranks_per_node = 0;  // for a prediction; 0: not given
  std::string require = {};           // "healthy": doctor must find no failure
  std::string sysroot = "/";          // for doctor
  bool verbose = false;               // progress block by block; the result with settings and formulas
  bool quiet = false;                 // no progress
};

/// How the user wants to see tables on a terminal.
struct ViewOptions {
  std::vector<std::string> columns;  // headings without units; empty: all that fit
  bool colored = true;               // on a terminal, unless NO_COLOR is set
};

struct PlanOptions {
  std::string config = {};
  std::vector<std::string> overrides = {};
  std::vector<std::string> only = {};
  int ranks = 0;                         // 0: not given; uses the launcher's number, or 1
  int ranks_per_node = 0;                // 0: not given; uses the launcher's number, or unknown
  std::string assume_mfu = {};           // for the time estimate
  std::string budget = {};               // the case whose budget to print; "": none
  std::string format = "text";           // md or json
  int best = 0;                          // the number of fastest combinations to name instead; 0: none
  std::optional<double> gpu_hours = {};  // of all ranks together, instead of measure.time_budget
  ViewOptions view = {};
};

/// As typed. Overrides the section `cost` of the result's configuration.
struct CostOptions {
  std::string per_gpu_hour, run_tokens, currency;
  bool any() const { return !per_gpu_hour.empty() || !run_tokens.empty() || !currency.empty(); }
};

struct ShowOptions {
  std::vector<std::string> files;  // exactly one
  ViewOptions view;
  std::string format = "text";
  CostOptions cost;
  bool breakdown = false;               // also the breakdown of the profiled steps
  bool follow = false;                  // repeat after each round until the sweep ends
  bool verbose = false;                 // also settings and formulas; all profiled steps
  std::vector<std::string> cases = {};  // with breakdown: cases to show besides the baseline
};

struct CompareOptions {
  std::vector<std::string> files;  // one run for each of two sides, or more runs of one configuration
  std::vector<std::string> with;   // runs of the second side; `files` are then those of the first
  std::string format = "text";
  ViewOptions view;
  std::string fail_on;     // for analysis::parse_gate; "": never
  bool reproduce = false;  // compare the effects of changes, not times
  bool history = false;    // treat `files` as a series of runs
  bool anyway = false;     // also if the files are incomparable
  bool verbose = false;    // all rows in text
};

struct ExportOptions {
  std::string file;
  std::string case_name;  // "": all that is proven, or the baseline of a configuration
  std::string format = "harness";
};

struct TraceOptions {
  std::string file;
  std::string case_name = "baseline";
  std::string output;  // -o; "": the result file's name with the ending .trace.json; "-": `out`
  bool force = false;
};

struct ReadOptions {
  std::vector<std::string> files;  // "-": standard input
  std::vector<std::string> fill;   // --set: ranks=16, global_batch_size=64, hardware=h100-sxm
  std::string output;              // -o: writes the job as a configuration; "": none
  bool force = false;
  std::string format = "text";  // or json
};

struct ReportOptions {
  std::vector<std::string> files;  // a result, or the traces of a job
  std::string output;              // -o; "": the first file's name with another ending; "-": `out`
  std::string format = "html";
  CostOptions cost;
  bool force = false;
};

struct VariablesOptions {
  std::string name;  // a variable or a key; "": all
  std::string format = "text";
  bool schema = false;
};

struct MakeTokensOptions {
  std::string file;
  std::int64_t tokens = 0, vocabulary = 0;
  std::uint64_t seed = 1;  // default of measure.seed: the same tokens that a sweep without a file generates
  bool force = false;      // replace an existing file
};

struct InitOptions {
  int ranks = 0;        // 0: one per GPU, or by the number of cores
  std::string backend;  // "": cuda if there is a GPU
  std::string output = "harness.yaml";
};

struct SelftestOptions {
  std::vector<std::string> suites;  // operations, reference; empty or "all": every suite
  std::string backend = "cuda";
  std::vector<std::string> only;  // substrings of the names of the operations to run
  bool fast = false;              // operations at small sizes only
  bool verbose = false;           // print each case before it runs
  std::string reference;          // folder; "": searched beside the program
  int threads = 0;                // of the cpu backend; 0: all cores
  std::uint64_t seed = 0;         // for the operations' inputs; 0: random
};

struct DoctorOptions {
  std::string sysroot = "/";              // replaces "/"; may hold {rank}
  std::string format = "text";            // text, md or json
  std::string stages = {};                // "static,nccl,load"; "": all possible ones
  bool list = false;                      // print the table of checks instead
  bool strict = false;                    // a warning is exit code 1
  bool all = false;                       // also passes and skips
  std::vector<std::string> against = {};  // result file of an earlier sweep; then of a later one instead of these nodes
  std::string allreduce = {};             // print the least time of an all-reduce of this size instead; "": no
  std::string within = {};                // check whether it is possible in this time; "": no
  std::string hardware = {};              // hardware file of the machines of the all-reduce
  int ranks = 0;                          // ranks of the all-reduce; 0: those of one machine
};

struct CalibrateOptions {
  std::string config = {};       // configuration whose sizes are measured; "": usual sizes
  std::string output = {};       // -o: prefix of the names of the two files; "": the host's name
  std::string backend = {};      // "": the configuration's, or the usual one of this machine
  std::string time_budget = {};  // "": a minute
  bool force = false;            // replace existing files
};

/// A command line: the verb with its options, or the help text that was requested.
struct Arguments {
  std::string verb, help;
  SweepOptions sweep;
  PlanOptions plan;
  ShowOptions show;
  ReportOptions report;
  ReadOptions read;
  CompareOptions compare;
  ExportOptions export_settings;
  TraceOptions trace;
  MakeTokensOptions make_tokens;
  VariablesOptions variables;
  InitOptions init;
  SelftestOptions selftest;
  DoctorOptions doctor;
  CalibrateOptions calibrate;
  std::string rounds, time_budget, seed, backend, hardware;  // shorthands for --set, of `sweep` and `plan`
  std::string min_bytes, max_bytes, step_factor;  // shorthands for a sweep of message_size alone, as in nccl-tests
};
/// Parses a command line. Throws Error with a hint at the option that was probably meant.
Arguments parse_arguments(const std::vector<std::string>& typed);

// One function per verb. They return the exit code and throw Error.
int sweep(job::Job& job, const SweepOptions& options, std::ostream& out, std::ostream& err);  // rank 0 only

/// Runs doctor's checks on the nodes of this plan's sweep, within two seconds; empty for a prediction. Findings do not
/// stop a sweep unless require_healthy is set: then nodes have the time limit of `harness doctor`, and failures and
/// nodes that did not deliver all facts throw Error with exit code 2. `sysroot` replaces "/", as in `harness doctor`.
store::DoctorRecord examine_nodes(job::Job& job, const plan::Plan& plan, const std::string& sysroot,
                                  bool require_healthy, sweep::ProgressLine& progress);
/// For `--resume FILE`, which takes `env` from the file: throws Error if the file belongs to another user and its `env`
/// makes the workers run code from elsewhere.
void require_own_code(const plan::Plan& plan, const std::string& path);
/// Plans the sweep on all ranks of the job. Throws Error if the backend or a GPU is missing, or if nothing can be
/// planned.
plan::Plan plan_sweep(const job::Job& job, const config::Experiment& experiment, const std::vector<std::string>& only,
                      plan::Processes processes);

/// 0: no problem; 1: warnings, if strict; 2: a failure, or impossible; 3: nothing could be read of a node, or an Error.
int doctor(job::Job& job, const DoctorOptions& options, std::ostream& out);  // rank 0 only
/// The parts of doctor that need neither nodes nor a job: --list, two files of --against, and --allreduce. The latter
/// throws Error for a size or time that has no unit or is not above 0, or if the hardware file does not state the GPUs
/// of a machine or their links.
int doctor_alone(const DoctorOptions& options, std::ostream& out);
/// Measures the inputs of predictions and writes a hardware file and a calibration.
int calibrate(job::Job& job, const CalibrateOptions& options, std::ostream& out, std::ostream& err);  // rank 0 only
/// `progress`: receives the progress of a long search in a line that is rewritten; nullptr: none.
int plan(const PlanOptions& options, std::ostream& out, std::ostream* progress = nullptr);
int show(const ShowOptions& options, std::ostream& out, std::ostream& err);
/// `show --follow`: prints the table and the progress of the sweep again after each finished round, until the file says
/// that the sweep is complete or was stopped; returns the exit code of show(). `wait` sleeps between two reads of the
/// file. `redraw`: `out` is a terminal, where each table replaces the one before. Throws Error if the file cannot be
/// read. A line on `err` says whether the sweep still runs or was killed, if this machine can tell
/// (store::standing_of); following continues either way.
int follow(const ShowOptions& options, std::ostream& out, std::ostream& err, const std::function<void()>& wait,
           bool redraw = false);
/// 0: every file was understood, whatever its content.
int read(const ReadOptions& options, std::ostream& out);
/// 0: the report was written, whatever its findings.
int report(const ReportOptions& options, std::ostream& out);
/// 0: success; 2: a case fails fail_on; 3: the files cannot be compared; 4: a control moved or a file is partial.
int compare(const CompareOptions& options, std::ostream& out);
int export_settings(const ExportOptions& options, std::ostream& out);
int trace(const TraceOptions& options, std::ostream& out, std::ostream& err);
/// Writes a file of synthetic tokens (data/token_file.h).
int make_tokens(const MakeTokensOptions& options, std::ostream& out);
int variables(const VariablesOptions& options, std::ostream& out);
/// A JSON Schema (draft 7) of the configuration, for editors: every key with its help, and no others. It checks values
/// that are words; the program checks sizes, times, numbers and composite values.
std::string configuration_schema();
/// 0: all checks that ran passed; 1: something failed; 3: nothing could be run, with a one-line message.
int selftest(const SelftestOptions& options, std::ostream& out, std::ostream& err);
int selftest(const SelftestOptions& options, const backend::Backend& subject, const backend::Backend& oracle,
             std::ostream& out, std::ostream& err);

struct FirstMachine {
  std::vector<machine::GpuHealth> gpus;
  int cores = 1;
  std::string cpu;  // its model
};

/// A commented first configuration, and what it says.
struct FirstConfiguration {
  config::BackendKind backend{};
  int ranks = 1;
  std::string machine;   // in words
  std::string device;    // the GPU's name, "" if there is none here
  std::string hardware;  // the file that lists it, "" if none does
  std::string model, precision;
  std::string text;

  bool on_gpus() const { return config::traits_of(backend).ranks_are_gpus; }
};

/// `options.output` is the path of the file: paths in the configuration are relative to it. Throws Error.
FirstConfiguration first_configuration(const FirstMachine& machine, const InitOptions& options);

/// Writes the configuration for this machine and prints the next steps. Throws Error if the file exists.
int init(const InitOptions& options, std::ostream& out);

/// Runs the program. `arguments`: without the program's name. Data goes to `out`, progress and messages to `err`. Exit
/// codes: 0 success, 1 usage, configuration or I/O error, 2 slower than allowed (compare --fail-on), 3 nothing can be
/// compared, 4 a case failed, lost blocks cost a verdict, the control moved, or `compare` met a partial file, 5 a sweep
/// was stopped before its end. `doctor` has its own codes (above).
int run_cli(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace harness::cli
