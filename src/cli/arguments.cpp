#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <regex>
#include <sstream>
#include <string_view>
#include <utility>

#include "backends/backends.h"
#include "base/identity.h"
#include "base/text.h"
#include "cli/verbs.h"

namespace harness::cli {
namespace {

CLI::Validator one_of(const std::vector<std::string>& words) {
  const auto complaint = [words](const std::string& text) {
    const bool is_one = std::ranges::find(words, text) != words.end();
    return is_one ? "" : fmt::format("found {}; allowed: {}", quote(text), join(words, ", "));
  };
  return {complaint, ""};
}

CLI::Validator from_to(std::int64_t least, std::int64_t most) {
  const auto complaint = [least, most](const std::string& text) {
    const std::int64_t value = number_in<std::int64_t>(text).value_or(least - 1);
    return value >= least && value <= most
               ? ""
               : fmt::format("found {}; allowed: a whole number from {} to {}", quote(text), least, most);
  };
  return {complaint, ""};
}

template <class Options>
void add_common(CLI::App& verb, Options& o, Arguments& a) {
  verb.add_option("config", o.config, "the configuration, such as configs/laptop.yaml");
  verb.add_option("--set", o.overrides, "override a key: measure.rounds=4, micro_batch_size=2, backend=cpu")
      ->take_all()
      ->allow_extra_args(false);
  verb.add_option("--only", o.only, "measure only these cases or variables, and the baseline")->take_all();
  verb.add_option("-b,--minbytes", a.min_bytes, "smallest message size (collective sweeps): 8, 64K");
  verb.add_option("-e,--maxbytes", a.max_bytes, "largest message size: 8G");
  verb.add_option("-f,--stepfactor", a.step_factor, "factor between two sizes (default: 2)");
  verb.add_option("--backend", a.backend, "cpu, cuda, or sim, which predicts");
  verb.add_option("--hardware", a.hardware, "a file of configs/hardware, such as h100-sxm or p5");
  verb.add_option("--rounds", a.rounds, "number of rounds");
  verb.add_option("--time-budget", a.time_budget, "fit the rounds into this time: 10 min");
  verb.add_option("--seed", a.seed, "seed of the weights, the tokens and the order of blocks");
}

void add_format(CLI::App& verb, std::string& format, const std::vector<std::string>& words) {
  verb.add_option("--format", format, join(words, ", "))->check(one_of(words));
}

CLI::Option* add_ranks(CLI::App& verb, const char* name, int& ranks, const char* help, int least = 1) {
  return verb.add_option(name, ranks, help)->check(from_to(least, 1 << 20));
}

void add_view(CLI::App& verb, ViewOptions& view) {
  verb.add_option("--columns", view.columns, "only these columns of the table: step,change,verdict")
      ->delimiter(',')
      ->allow_extra_args(false);
}

void add_cost(CLI::App& verb, CostOptions& cost) {
  verb.add_option("--cost", cost.per_gpu_hour,
                  "price of a GPU for an hour: 2.50; estimates the cost of a training run");
  verb.add_option("--run-tokens", cost.run_tokens, "tokens of that training run: 300e9");
  verb.add_option("--currency", cost.currency, "currency of the price (default USD)");
}

void add_sweep(CLI::App& verb, SweepOptions& o, Arguments& a) {
  add_common(verb, o, a);
  verb.add_option("-o,--output", o.output, "the result file (default: `output` in the configuration)");
  verb.add_option("--wrap", o.wrap,
                  "start the timed workers under this command: 'nsys profile -o b%q{HARNESS_BLOCK}-r%q{HARNESS_RANK}'");
  verb.add_flag("--force", o.force, "replace the result file if it exists");
  add_ranks(verb, "--ranks", o.ranks, "for a prediction (--backend sim): number of ranks");
  add_ranks(verb, "--ranks-per-node", o.ranks_per_node, "for a prediction: ranks that share a node");
  verb.add_option("--require", o.require,
                  "healthy: measure nothing, and end with exit code 2, where doctor finds a failure on a node")
      ->check(one_of({"healthy"}));
  verb.add_option("--sysroot", o.sysroot, "root directory that the node checks read instead of /");
  auto* quiet = verb.add_flag("--quiet", o.quiet, "no progress: only the result, warnings and errors");
  verb.add_flag("-v,--verbose", o.verbose, "progress block by block; the result with settings and formulas")
      ->excludes(quiet);
  verb.add_option("--resume", o.resume,
                  "continue an interrupted result file by what it says; with --rounds N, add rounds to a complete one")
      ->type_name("FILE");
}

void add_plan(CLI::App& verb, PlanOptions& o, Arguments& a) {
  add_common(verb, o, a);
  verb.get_option("config")->required()->description(
      "the configuration, such as configs/laptop.yaml; with --hardware also a result file, to be moved to it");
  add_ranks(verb, "--ranks", o.ranks, "number of ranks to plan for (default: as many as mpirun starts)");
  add_ranks(verb, "--ranks-per-node", o.ranks_per_node, "ranks that share a node, numbered node by node");
  add_format(verb, o.format, {"text", "md", "json"});
  add_view(verb, o.view);
  verb.add_option("--best", o.best,
                  "predict all combinations of the swept values instead, and name this many of the fastest that fit")
      ->check(from_to(1, 1000));
  verb.add_option("--assume-mfu", o.assume_mfu, "estimate the time from an MFU of all cases: 40%");
  verb.add_option(
      "--gpu-hours", o.gpu_hours,
      "plan for this many GPU-hours (without GPUs, hours of a rank): the rounds that fit and what they resolve");
  verb.add_option("--budget", o.budget,
                  "print the FLOP, bytes and least time of each operation of CASE on the stated hardware")
      ->expected(0, 1)
      ->default_str("baseline")
      ->type_name("[CASE]");
}

void add_show(CLI::App& verb, ShowOptions& o) {
  verb.add_option("file", o.files, "a result file")->required();
  add_format(verb, o.format, {"text", "md", "csv", "json"});
  verb.add_flag("--follow", o.follow, "print the table again after each round until the sweep has ended");
  verb.add_flag(
      "--breakdown", o.breakdown,
      "where the time of each case's step went beside its prediction, its bottleneck, the late ranks, and what is "
      "wrong with the cluster (text, md; json: the prediction alone)");
  verb.add_option("--case", o.cases, "with --breakdown: these cases besides the baseline (default: the best one)")
      ->take_all()
      ->needs("--breakdown");
  verb.add_flag("-v,--verbose", o.verbose, "also settings, formulas and noise; with --breakdown: every case");
  add_cost(verb, o.cost);
  add_view(verb, o.view);
}

void add_read(CLI::App& verb, ReadOptions& o) {
  verb.add_option(
          "files", o.files,
          "launch scripts, configurations of frameworks, training logs, NCCL_DEBUG=INFO logs, outputs of nccl-tests, "
          "NCCL topology and graph XML, nvidia-smi topo -m, Inspector and Flight Recorder JSON, hostfiles, traces of "
          "the PyTorch profiler and of Nsight Systems, with a configuration of harness: beside its prediction; also "
          ".gz; - for the standard input")
      ->required();
  verb.add_option("--set", o.fill, "what the files do not say: ranks=16, global_batch_size=64, hardware=h100-sxm")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  verb.add_option("-o,--output", o.output, "write the job as a configuration, for `plan` and `sweep`");
  verb.add_flag("--force", o.force, "overwrite the configuration if it exists");
  add_format(verb, o.format, {"text", "json"});
}

void add_report(CLI::App& verb, ReportOptions& o) {
  verb.add_option("files", o.files, "a result file, or traces as `read` takes them")->required();
  verb.add_option("-o,--output", o.output, "the page (default: beside the file; - for the terminal)");
  add_format(verb, o.format, {"html", "md"});
  verb.add_flag("--force", o.force, "overwrite the page if it exists");
  add_cost(verb, o.cost);
}

void add_compare(CLI::App& verb, CompareOptions& o) {
  verb.add_option("files", o.files,
                  "two result files; three or more: runs of one configuration, which agree or not and prove "
                  "something together")
      ->required();
  verb.add_option("--with", o.with, "runs of the other side: compare a1.h5 a2.h5 a3.h5 --with b1.h5 …");
  verb.add_flag("--reproduce", o.reproduce,
                "compare each change's effect on its own baseline, not times: for different clusters");
  verb.add_flag("--history", o.history, "take the files as one series of runs: which case changed, between which two?");
  verb.add_option("--fail-on", o.fail_on,
                  "exit code 2: slower[:PERCENT], if a case is proven slower by more (default: the smallest effect)");
  verb.add_flag("--anyway", o.anyway,
                "compare even if the backends, workloads, models, numbers of ranks or baselines' settings differ");
  add_format(verb, o.format, {"text", "md", "json"});
  verb.add_flag("-v,--verbose", o.verbose, "text with all rows, not only those that moved most");
  add_view(verb, o.view);
}

void add_export(CLI::App& verb, ExportOptions& o) {
  verb.add_option("file", o.file, "a result file, or with --format F a configuration")->required();
  verb.add_option("--case", o.case_name,
                  "with --format F: all settings of this case, proven or not; else only this case");
  verb.add_option("--format", o.format,
                  "harness (default): the next configuration; env, megatron, deepspeed or torchtitan: settings "
                  "for it")
      ->check(one_of({"env", "megatron", "deepspeed", "torchtitan", "harness"}));
}

void add_trace(CLI::App& verb, TraceOptions& o) {
  verb.add_option("file", o.file, "a result file")->required();
  verb.add_option("--case", o.case_name, "whose step (default: baseline)");
  verb.add_option("-o,--output", o.output,
                  "the trace to write (default: beside the file, as NAME.trace.json; - for the terminal)");
  verb.add_flag("--force", o.force, "overwrite the trace if it exists");
}

void add_variables(CLI::App& verb, VariablesOptions& o) {
  verb.add_option("name", o.name, "a variable or a key, such as bucket_size or measure.rounds");
  add_format(verb, o.format, {"text", "md"});
  verb.add_flag("--schema", o.schema, "a JSON Schema of configurations, for editors");
}

void add_make_tokens(CLI::App& verb, MakeTokensOptions& o) {
  verb.add_option("file", o.file, "the file to write")->required();
  verb.add_option("--tokens", o.tokens, "how many")->required()->check(from_to(1, std::int64_t{1} << 48));
  verb.add_option("--vocabulary", o.vocabulary, "tokens are below it: the model's vocab")
      ->required()
      ->check(from_to(2, std::int64_t{1} << 31));
  verb.add_option("--seed", o.seed, "default 1; measure.seed gives the tokens of a sweep without a file");
  verb.add_flag("--force", o.force, "replace the file if it is there");
}

void add_init(CLI::App& verb, InitOptions& o) {
  add_ranks(verb, "--ranks", o.ranks, "number of ranks (default: one per GPU, or by the cores)");
  verb.add_option("--backend", o.backend, "cpu or cuda (default: cuda where there is a GPU)");
  verb.add_option("-o,--output", o.output, "the file to write (default: harness.yaml)");
}

void add_selftest(CLI::App& verb, SelftestOptions& o) {
  verb.add_option("suites", o.suites, "operations, reference or all (the default)")
      ->check(one_of({"operations", "reference", "all"}));
  verb.add_option("--backend", o.backend, "the backend to check: cuda (the default) or cpu");
  verb.add_option("--only", o.only, "only operations whose case has this in its name: layer_norm, 'fused, 2 x 2'")
      ->take_all()
      ->allow_extra_args(false);
  verb.add_flag("--fast", o.fast, "operations at small sizes only");
  verb.add_flag("--verbose", o.verbose, "name each operation's case before it runs");
  verb.add_option("--reference", o.reference, "the folder of the reference (tests/reference)");
  verb.add_option("--threads", o.threads, "threads of the cpu backend (default: all cores)")->check(from_to(0, 4096));
  verb.add_option("--seed", o.seed, "seed of the operations' numbers (default: a new one each time)");
}

void add_doctor(CLI::App& verb, DoctorOptions& o) {
  verb.add_flag("--strict", o.strict, "exit code 1 for a warning");
  verb.add_flag("--all", o.all, "also what passed and what does not apply");
  add_format(verb, o.format, {"text", "md", "json"});
  verb.add_option("--stages", o.stages,
                  "which of static, nccl, load (default: all); static alone starts no worker and takes seconds")
      ->type_name("LIST");
  verb.add_option("--against", o.against,
                  "say first what has changed since the sweep in BEFORE, node by node; with AFTER, up to that sweep "
                  "and not to now")
      ->expected(1, 2)
      ->type_name("BEFORE [AFTER]");
  auto* allreduce = verb.add_option("--allreduce", o.allreduce, "the least time that an all-reduce of SIZE can take")
                        ->type_name("SIZE");
  verb.add_option("--within", o.within, "with --allreduce: is that possible in TIME? exit code 2: no")
      ->type_name("TIME")
      ->needs(allreduce);
  add_ranks(verb, "--ranks", o.ranks, "with --allreduce: its ranks (default: of one machine)", 2)->needs(allreduce);
  auto* hardware =
      verb.add_option("--hardware", o.hardware, "with --allreduce: on machines of this hardware file, such as h100-sxm")
          ->needs(allreduce);
  allreduce->needs(hardware);
  verb.add_option("--sysroot", o.sysroot,
                  "look below this folder instead of /; {rank} in it is replaced by each rank's number");
  auto* list =
      verb.add_flag("--list", o.list, "every check: what it asks, where it reads, how bad it may be, where to read on")
          ->excludes(allreduce);
  for (const char* of_nodes : {"--against", "--stages", "--strict", "--all", "--sysroot"})
    for (CLI::Option* looks_at_none : {list, allreduce}) looks_at_none->excludes(verb.get_option(of_nodes));
}

void add_calibrate(CLI::App& verb, CalibrateOptions& o) {
  verb.add_option("config", o.config, "measure the sizes that this sweep's steps have (default: usual ones)");
  verb.add_option("-o,--output", o.output,
                  "write PREFIX-hardware.yaml and PREFIX-calibration.yaml (default: the host's name)")
      ->type_name("PREFIX");
  verb.add_option("--backend", o.backend, "cpu or cuda (default: the configuration's, or as the machine is)");
  verb.add_option("--time-budget", o.time_budget,
                  "about how long: rounds that fit in, but one at least (default: 1 min)");
  verb.add_flag("--force", o.force, "replace the files if they exist");
}

void add_verbs(CLI::App& app, Arguments& a) {
  app.require_subcommand(1);
  app.set_version_flag("--version", tool_version() + "\n" + backends::build_description());
  const auto verb = [&](const char* name, const char* help) -> CLI::App& { return *app.add_subcommand(name, help); };
  add_sweep(verb("sweep", "measure: mpirun -np 2 ./harness sweep configs/laptop.yaml"), a.sweep, a);
  add_plan(verb("plan", "show what would run, whether it fits, and which effects it can resolve; needs no MPI"), a.plan,
           a);
  add_show(verb("show", "print the table of a result file"), a.show);
  add_read(verb("read", "what is wrong, from what you have: read pretrain.sh train.log nccl.log rank0.json.gz"),
           a.read);
  add_report(verb("report", "write a report on a result file or on the traces of a job, for a browser or for print"),
             a.report);
  add_compare(verb("compare", "compare result files: compare monday.h5 friday.h5"), a.compare);
  add_export(
      verb("export", "write settings for a framework or the next sweep: what a result proves, or a planned case"),
      a.export_settings);
  add_trace(verb("trace", "write one profiled step, for chrome://tracing and ui.perfetto.dev"), a.trace);
  add_variables(verb("variables", "what a configuration may say: every variable and every other key"), a.variables);
  add_make_tokens(verb("make-tokens", "write a file of synthetic tokens for data_file"), a.make_tokens);
  add_init(verb("init", "write a first configuration for this machine"), a.init);
  add_selftest(verb("selftest", "check a backend on this machine for correctness"), a.selftest);
  add_doctor(verb("doctor", "is every node healthy and set up alike? mpirun -np 16 ./harness doctor"), a.doctor);
  add_calibrate(
      verb("calibrate", "measure what predictions rest on: mpirun -np 2 ./harness calibrate configs/laptop.yaml"),
      a.calibrate);
}

// Error messages of CLI11, and their replacements.
constexpr std::array<std::pair<const char*, const char*>, 3> wordings{
    {{"(.*): [0-9]+ required .* missing", "$1 needs a value"},
     {"Could not convert: (.*) = (.*)", "$1: found '$2'; expected a number"},
     {"(.*): At Most 1 required but received ([0-9]+)", "$1 is given $2 times; give it once"}}};

std::string in_our_words(const std::string& text) {
  constexpr std::size_t most = 1000;  // the stack use of std::regex grows with the length of the text
  if (text.size() > most) return text;
  for (const auto& [theirs, ours] : wordings) {
    if (std::smatch found; std::regex_match(text, found, std::regex(theirs))) return found.format(ours);
  }
  return text;
}

// Options of nccl-tests that differ or do not exist here.
struct Foreign {
  std::string_view brief, name, here;
};
constexpr std::array<Foreign, 7> of_nccl_tests{{
    {"-g", "--ngpus", "a rank has one GPU: mpirun -np N says how many"},
    {"-t", "--nthreads", "a rank is a process with one GPU: mpirun -np N says how many"},
    {"-n", "--iters", "here it is --set baseline.repetitions=20, operations of a step"},
    {"-w", "--warmup_iters", "here it is --set measure.warmup_steps=5"},
    {"-c", "--check", "every block checks its results; nothing turns that off"},
    {"-i", "--stepbytes", "sizes grow by a factor: -f 2"},
    {"-d", "--datatype", "here it is --set baseline.precision=bf16"},
}};

// A hint for arguments that a verb does not know; "" if nothing is near.
std::string hint_for_unknown(CLI::App& app) {
  const std::vector<CLI::App*> verbs = app.get_subcommands();
  if (verbs.empty()) return "";
  std::vector<std::string> names;
  for (const CLI::Option* option : verbs.front()->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  std::string known, near;
  for (const std::string& word : app.remaining(true)) {
    const std::string option = word.substr(0, word.find('='));
    const auto foreign = std::ranges::find_if(
        of_nccl_tests, [&](const Foreign& row) { return option == row.brief || option == row.name; });
    if (foreign != of_nccl_tests.end()) {
      known += fmt::format("; {}: {}", option, foreign->here);
    } else if (word.starts_with("--") && near.empty()) {
      near = did_you_mean(nearest(word, names));
    }
  }
  return known + near;
}

// Translates "help" and "help VERB". Reports an unknown verb before CLI11 reports a missing one.
std::vector<std::string> understood(std::vector<std::string> arguments, CLI::App& app) {
  if (arguments.empty() || arguments[0].starts_with("-")) return arguments;
  if (arguments[0] == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
    return arguments;
  }
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    verbs.push_back(verb->get_name());
  if (std::ranges::find(verbs, arguments[0]) != verbs.end()) return arguments;
  fail("there is no command {}; allowed: {}{}", quote(arguments[0]), join(verbs, ", "),
       did_you_mean(nearest(arguments[0], verbs)));
}

void refuse_columns_without_a_table(const ViewOptions& view, const std::string& format) {
  if (!view.columns.empty() && format != "text" && format != "md")
    fail("--columns chooses from a table, which --format {} does not print: give text or md", format);
}

}  // namespace

Arguments parse_arguments(const std::vector<std::string>& typed) {
  Arguments a;
  CLI::App app{
      "Finds out why a GPU training cluster is slow: runs real GPT training steps, changes one setting at a time, "
      "and reports the effect of each with its confidence interval.",
      "harness"};
  add_verbs(app, a);
  std::vector<std::string> arguments = understood(typed, app);
  std::ranges::reverse(arguments);  // CLI11 expects reversed order
  try {
    app.parse(arguments);
    a.verb = app.get_subcommands().front()->get_name();
    refuse_columns_without_a_table(a.show.view, a.show.format);
    refuse_columns_without_a_table(a.compare.view, a.compare.format);
    refuse_columns_without_a_table(a.plan.view, a.plan.format);
  } catch (const CLI::Success& asked) {
    std::ostringstream help;
    app.exit(asked, help, help);
    a.help = help.str();
  } catch (const CLI::ParseError& wrong) {
    const bool is_unknown = dynamic_cast<const CLI::ExtrasError*>(&wrong) != nullptr;
    const std::string hint = is_unknown ? hint_for_unknown(app) : "";
    throw Error(escaped(in_our_words(wrong.what()) + hint) + "\nRun with --help for more information.");
  }
  return a;
}

}  // namespace harness::cli
