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
  std::string config;                  // "" with resume, which takes it from the file
  std::string output;                  // -o; "" for the configuration's template
  std::vector<std::string> overrides;  // --set, --rounds … as key=value
  std::vector<std::string> only;
  std::string wrap;     // a command to start the timed workers under
  std::string command;  // as it was typed, for the result file
  bool force = false;
  std::string resume = {};            // the file to continue; "": none
  std::string rounds = {};            // with resume: the total that a complete file is extended to
  int ranks = 0, ranks_per_node = 0;  // of a prediction; 0: not given
  std::string require = {};           // "healthy": no failure of doctor's
  std::string sysroot = "/";          // of doctor
  bool verbose = false;               // progress block by block, the result with settings and formulas
  bool quiet = false;                 // no progress
};

/// How a person wants to see tables on a terminal.
struct ViewOptions {
  std::vector<std::string> columns;  // headings without units; empty: all that fit
  bool colored = true;               // on a terminal, unless NO_COLOR is set
};

struct PlanOptions {
  std::string config = {};
  std::vector<std::string> overrides = {};
  std::vector<std::string> only = {};
  int ranks = 0;                         // 0: not given; then as many as the launcher started, or 1
  int ranks_per_node = 0;                // 0: not given; then as the launcher says, or not known
  std::string assume_mfu = {};           // to estimate the time from
  std::string budget = {};               // the case whose budget to print; "" for none
  std::string format = "text";           // md or json
  int best = 0;                          // how many of the fastest combinations to name instead; 0: none
  std::optional<double> gpu_hours = {};  // of all ranks together, instead of measure.time_budget
  ViewOptions view = {};
};

/// As typed; overrides the section `cost` of the result's configuration.
struct CostOptions {
  std::string per_gpu_hour, run_tokens, currency;
};

struct ShowOptions {
  std::vector<std::string> files;  // one
  ViewOptions view;
  std::string format = "text";
  CostOptions cost;
  bool breakdown = false;               // where the profiled steps went, below the table
  bool follow = false;                  // again after each round, until the sweep has ended
  bool verbose = false;                 // also settings and formulas; all profiled steps
  std::vector<std::string> cases = {};  // with breakdown: these besides the baseline
};

struct CompareOptions {
  std::vector<std::string> files;  // two sides of a run each, or more runs of one configuration
  std::vector<std::string> with;   // then `files` are the runs of one side and these of the other
  std::string format = "text";
  ViewOptions view;
  std::string fail_on;     // as analysis::parse_gate reads it; "": nothing
  bool reproduce = false;  // compare what changes did, not times
  bool history = false;    // `files` as one series of runs
  bool anyway = false;     // also files that cannot be compared
  bool verbose = false;    // all rows in text
};

struct ExportOptions {
  std::string file;
  std::string case_name;  // "" for all that is proven, or for the baseline of a configuration
  std::string format = "harness";
};

struct TraceOptions {
  std::string file;
  std::string case_name = "baseline";
  std::string output;  // -o; "" for the result file's name with the ending .trace.json, "-" for `out`
  bool force = false;
};

struct ReadOptions {
  std::vector<std::string> files;  // "-": the standard input
  std::vector<std::string> fill;   // --set: ranks=16, global_batch_size=64, hardware=h100-sxm
  std::string output;              // -o: takes the job as a configuration; "": none
  bool force = false;
  std::string format = "text";  // or json
};

struct ReportOptions {
  std::vector<std::string> files;  // a result, or the traces of a job
  std::string output;              // -o; "" for the first file's name with another ending, "-" for `out`
  std::string format = "html";
  CostOptions cost;
  bool force = false;
};

struct VariablesOptions {
  std::string name;  // a variable or a key; "" for all
  std::string format = "text";
  bool schema = false;
};

struct MakeTokensOptions {
  std::string file;
  std::int64_t tokens = 0, vocabulary = 0;
  std::uint64_t seed = 1;  // measure.seed's default: then they are the tokens that a sweep without a file makes up
  bool force = false;      // the file may replace another
};

struct InitOptions {
  int ranks = 0;        // 0: one per GPU, or by the cores
  std::string backend;  // "": cuda where there is a GPU
  std::string output = "harness.yaml";
};

struct SelftestOptions {
  std::vector<std::string> suites;  // operations, reference; none or "all": every one
  std::string backend = "cuda";
  std::vector<std::string> only;  // operations whose name contains one of these
  bool fast = false;              // operations at small sizes only
  bool verbose = false;           // names each case before it runs
  std::string reference;          // folder; "": found beside the program
  int threads = 0;                // of the cpu backend; 0: all cores
  std::uint64_t seed = 0;         // of the operations' numbers; 0: another every time
};

struct DoctorOptions {
  std::string sysroot = "/";              // replaces "/"; may hold {rank}
  std::string format = "text";            // text, md or json
  std::string stages = {};                // "static,nccl,load"; "": all that are possible
  bool list = false;                      // the table of checks instead
  bool strict = false;                    // a warning is exit code 1
  bool all = false;                       // also what passed and what was left out
  std::vector<std::string> against = {};  // result file of an earlier sweep, and of a later one instead of these nodes
  std::string allreduce = {};             // the size whose least time is asked for instead; "": none
  std::string within = {};                // is it possible in this time; "": not asked
  std::string hardware = {};              // on machines of this hardware file
  int ranks = 0;                          // over so many ranks; 0: those of one machine
};

struct CalibrateOptions {
  std::string config = {};       // whose sizes are measured; "": usual ones
  std::string output = {};       // -o: what the names of the two files begin with; "": the host's name
  std::string backend = {};      // "": the configuration's, or what the machine is for
  std::string time_budget = {};  // "": a minute
  bool force = false;            // the files may replace others
};

/// A command line: its verb, whose options are set, or the help that it asks for.
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
  std::string rounds, time_budget, seed, backend, hardware;  // short for --set, of `sweep` and `plan`
  std::string min_bytes, max_bytes, step_factor;  // short for a sweep of message_size alone, as nccl-tests has it
};
/// Reads a command line. Throws Error in the words of this program, with the option that was meant.
Arguments parse_arguments(const std::vector<std::string>& typed);

// One verb each. They return the exit code and throw Error.
int sweep(job::Job& job, const SweepOptions& options, std::ostream& out, std::ostream& err);  // rank 0 only

/// The findings of doctor on the nodes of this plan's sweep, in at most two seconds; empty for a prediction. Nothing of
/// it stops a sweep, but with require_healthy: then a node has as long as in `harness doctor`, and Error with exit code
/// 2 says the failures, and which nodes did not tell all. `sysroot` replaces "/", as in `harness doctor`.
store::DoctorRecord examine_nodes(job::Job& job, const plan::Plan& plan, const std::string& sysroot,
                                  bool require_healthy, sweep::ProgressLine& progress);
/// For `--resume FILE`, which takes `env` from the file: throws Error if the file is another user's and some of it
/// makes the workers run code that lies elsewhere.
void require_own_code(const plan::Plan& plan, const std::string& path);
/// The plan on all ranks of the job. Throws Error if the backend or a GPU is missing, or if nothing can be planned.
plan::Plan plan_sweep(const job::Job& job, const config::Experiment& experiment, const std::vector<std::string>& only,
                      plan::Processes processes);

/// 0: nothing is wrong; 1: warnings, if strict; 2: a failure, or impossible; 3: nothing could be read of a
/// node. Errors end with 3.
int doctor(job::Job& job, const DoctorOptions& options, std::ostream& out);  // rank 0 only
/// Everything that needs no look at nodes, and so no job: --list, two files of --against, and --allreduce,
/// which throws Error for a size or a time without a unit or not above 0, and where the hardware file does not say how
/// many GPUs a machine has or what joins them.
int doctor_alone(const DoctorOptions& options, std::ostream& out);
/// Measures what predictions rest on and writes a hardware file and a calibration.
int calibrate(job::Job& job, const CalibrateOptions& options, std::ostream& out, std::ostream& err);  // rank 0 only
/// `progress`: where a long search says how far it is, in a line that is rewritten; nullptr: nowhere.
int plan(const PlanOptions& options, std::ostream& out, std::ostream* progress = nullptr);
int show(const ShowOptions& options, std::ostream& out, std::ostream& err);
/// `show --follow`: prints the table and how far the sweep is, again after each finished round, until the file says
/// that the sweep is complete or was stopped; then the exit code of show(). `wait` passes the time between two looks at
/// the file. `redraw`: `out` is a terminal, whose screen shows the table of now alone. Throws Error if the file cannot
/// be read. A line on `err` says whether the sweep runs or was killed, where this machine can know it
/// (store::standing_of), and it goes on looking.
int follow(const ShowOptions& options, std::ostream& out, std::ostream& err, const std::function<void()>& wait,
           bool redraw = false);
/// 0: every file was understood, whatever it says.
int read(const ReadOptions& options, std::ostream& out);
/// 0: the report was written, whatever its findings.
int report(const ReportOptions& options, std::ostream& out);
/// 0; 2: a case does not pass fail_on; 3: the files cannot be compared; 4: a control moved or a file is partial.
int compare(const CompareOptions& options, std::ostream& out);
int export_settings(const ExportOptions& options, std::ostream& out);
int trace(const TraceOptions& options, std::ostream& out, std::ostream& err);
/// Writes a file of synthetic tokens (data/token_file.h).
int make_tokens(const MakeTokensOptions& options, std::ostream& out);
int variables(const VariablesOptions& options, std::ostream& out);
/// A JSON Schema (draft 7) of the configuration, for editors: every key with its help, and nothing else allowed. Values
/// are checked as far as they are words; sizes, times, numbers, and what has parts are left to the program.
std::string configuration_schema();
/// 0: everything that ran passed; 1: something failed; 3: nothing could be run, with a message in one line.
int selftest(const SelftestOptions& options, std::ostream& out, std::ostream& err);
int selftest(const SelftestOptions& options, const backend::Backend& subject, const backend::Backend& oracle,
             std::ostream& out, std::ostream& err);

struct FirstMachine {
  std::vector<machine::GpuHealth> gpus;
  int cores = 1;
  std::string cpu;  // its model
};

/// A first configuration, commented, and what it is for.
struct FirstConfiguration {
  std::string text;
  std::string summary;  // "backend cpu, 2 ranks on the 2 cores of …"
  int ranks = 1;
  bool crowded = false;  // more ranks than cores to compute on
};

/// `options.output` is where it will stand: paths in it are from there. Throws Error.
FirstConfiguration first_configuration(const FirstMachine& machine, const InitOptions& options);

/// Writes it for this machine and says how to go on. Throws Error if the file exists.
int init(const InitOptions& options, std::ostream& out);

/// The whole program: `arguments` without the program's name. Data goes to `out`, progress and messages to `err`.
/// Exit codes: 0 success, 1 usage, configuration or I/O error, 2 slower than allowed (compare --fail-on), 3 nothing can
/// be compared, 4 a case failed, lost blocks cost a verdict, the control moved, or `compare` met a partial file, 5 a
/// sweep was stopped before its end. `doctor` has codes of its own (verbs.h).
int run_cli(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace harness::cli
