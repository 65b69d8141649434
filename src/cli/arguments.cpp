#include "cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "backends/backends.h"
#include "base/error.h"
#include "base/identity.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/output.h"
#include "config/backend.h"

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

void add_common(CLI::App& verb, std::string& config, std::vector<std::string>& overrides,
                std::vector<std::string>& only, Arguments& a) {
  verb.add_option("config", config, "the configuration, such as configs/laptop.yaml")->required();
  verb.add_option("--set", overrides, "override a key: measure.rounds=4, micro_batch_size=2, backend=cpu")->take_all();
  verb.add_option("--only", only, "measure only these cases or variables, and the baseline")->take_all();
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
  verb.add_option("--columns", view.columns, "only these columns of the table: step,change,verdict")->delimiter(',');
  verb.add_option("--color", view.color, "auto, always or never: verdicts in colour (auto: on a terminal)")
      ->check(one_of({"auto", "always", "never"}));
}

void add_cost(CLI::App& verb, CostOptions& cost) {
  verb.add_option("--cost", cost.per_gpu_hour,
                  "price of a GPU for an hour: 2.50; estimates the cost of a training run");
  verb.add_option("--run-tokens", cost.run_tokens, "tokens of that training run: 300e9");
  verb.add_option("--currency", cost.currency, "currency of the price (default USD)");
}

// A size as nccl-tests takes one (8, 64K, 8m, 8G), as a configuration has it: "64 KiB". Anything else stays as it is.
std::string size_of_nccl_tests(const std::string& text) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == std::string::npos) return text + " B";
  const auto unit = static_cast<char>(std::toupper(static_cast<unsigned char>(text.back())));
  if (digits > 0 && digits + 1 == text.size() && std::string_view("KMGT").find(unit) != std::string_view::npos)
    return fmt::format("{} {}iB", text.substr(0, digits), unit);
  return text;
}

}  // namespace

void Arguments::add_sugar(std::vector<std::string>& overrides, std::vector<std::string>& only) const {
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) overrides.push_back(fmt::format("{}={}", key, value));
  };
  // Here what is wrong can be said of the option that was typed.
  if (!backend.empty()) option_value("--backend", backend, config::parse_backend);
  if (!rounds.empty()) option_value("--rounds", rounds, parse_integer);
  if (!seed.empty()) option_value("--seed", seed, parse_integer);
  if (!time_budget.empty()) option_value("--time-budget", time_budget, parse_seconds);
  add("backend", backend);
  add("hardware", hardware);
  add("measure.rounds", rounds);
  add("measure.time_budget", time_budget);
  add("measure.seed", seed);
  if (min_bytes.empty() && max_bytes.empty() && step_factor.empty()) return;
  if (min_bytes.empty() || max_bytes.empty())
    fail("-b and -e go together: the first size and the last, such as -b 8 -e 8G -f 2");
  const std::string factor = step_factor.empty() ? "2" : step_factor;
  add("sweep.message_size",
      fmt::format("[{}..{} x{}]", size_of_nccl_tests(min_bytes), size_of_nccl_tests(max_bytes), factor));
  only.push_back("message_size");
}

std::vector<std::string> Parser::verbs() const {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(verb->get_name());
  return names;
}

Parser::Parser(Arguments& a) {
  app.require_subcommand(1);
  app.set_version_flag("--version", tool_version() + "\n" + backends::build_description());
  sweep = app.add_subcommand("sweep", "measure: mpirun -np 2 ./harness sweep configs/laptop.yaml");
  add_common(*sweep, a.sweep.config, a.sweep.overrides, a.sweep.only, a);
  sweep->add_option("-o,--output", a.sweep.output, "the result file (default: `output` in the configuration)");
  sweep->add_option(
      "--wrap", a.sweep.wrap,
      "start the timed workers under this command: 'nsys profile -o b%q{HARNESS_BLOCK}-r%q{HARNESS_RANK}'");
  sweep->add_flag("--force", a.sweep.force, "replace the result file if it exists; the old one is kept beside it");
  add_ranks(*sweep, "--ranks", a.sweep.ranks, "of a prediction (--backend sim): number of ranks");
  add_ranks(*sweep, "--ranks-per-node", a.sweep.ranks_per_node, "of a prediction: ranks that share a node");
  sweep
      ->add_option("--require", a.sweep.require,
                   "healthy: measure nothing, and end with exit code 2, where doctor finds a failure on a node")
      ->check(one_of({"healthy"}));
  sweep->add_option("--sysroot", a.sweep.sysroot, "root directory that the node checks read instead of /");
  sweep->get_option("config")->required(false);
  auto* quiet = sweep->add_flag("--quiet", a.sweep.quiet, "no progress: only the result, warnings and errors");
  sweep->add_flag("-v,--verbose", a.sweep.verbose, "progress block by block; the result with settings and formulas")
      ->excludes(quiet);
  sweep
      ->add_option("--resume", a.sweep.resume,
                   "continue an interrupted result file by what it says; with --rounds N, add rounds to a complete one")
      ->type_name("FILE");
  plan = app.add_subcommand("plan",
                            "show what would run, whether it fits, and which effects it can resolve; needs no MPI");
  add_common(*plan, a.plan.config, a.plan.overrides, a.plan.only, a);
  plan->get_option("config")->description(
      "the configuration, such as configs/laptop.yaml; with --hardware also a result file, to be moved to it");
  add_ranks(*plan, "--ranks", a.plan.ranks, "number of ranks to plan for (default: as many as mpirun starts)");
  add_ranks(*plan, "--ranks-per-node", a.plan.ranks_per_node, "ranks that share a node, numbered node by node");
  add_format(*plan, a.plan.format, {"text", "md", "json"});
  add_view(*plan, a.plan.view);
  plan->add_option(
          "--best", a.plan.best,
          "predict all combinations of the values that are swept instead, and name as many of the fastest that fit")
      ->check(from_to(1, 1000));
  plan->add_option("--assume-mfu", a.plan.assume_mfu, "estimate the time from an MFU of all cases: 40%");
  plan->add_option("--assume-setup", a.plan.assume_setup, "with --assume-mfu: to set up a block (default: 30 s)")
      ->needs("--assume-mfu");
  plan->add_option("--gpu-hours", a.plan.gpu_hours,
                   "plan for this many hours of a rank, all ranks together: the rounds that fit and what they resolve");
  plan->add_option("--budget", a.plan.budget,
                   "print the FLOP, bytes and least time of each operation of CASE on the stated hardware")
      ->expected(0, 1)
      ->default_str("baseline")
      ->type_name("[CASE]");
  show = app.add_subcommand("show", "print the table of a result file");
  show->add_option("file", a.show.files, "a result file")->required();
  add_format(*show, a.show.format, {"text", "md", "csv", "long-csv", "json"});
  show->add_flag("--follow", a.show.follow, "print the table again after each round until the sweep has ended");
  show->add_flag(
      "--breakdown", a.show.breakdown,
      "where the time of each case's step went beside its prediction, its bottleneck, the late ranks, and what is "
      "wrong with the cluster (text, md; json: the prediction alone)");
  show->add_option("--case", a.show.cases, "with --breakdown: these cases besides the baseline (default: the best one)")
      ->take_all()
      ->needs("--breakdown");
  show->add_flag("-v,--verbose", a.show.verbose, "also settings, formulas and noise; with --breakdown: every case");
  add_cost(*show, a.show.cost);
  add_view(*show, a.show.view);
  add_read(a.read);
  add_report(a.report);
  add_readers(a);
  variables = app.add_subcommand("variables", "what a configuration may say: every variable and every other key");
  variables->add_option("name", a.variables.name, "a variable or a key, such as bucket_size or measure.rounds");
  add_format(*variables, a.variables.format, {"text", "md"});
  variables->add_flag("--schema", a.variables.schema, "a JSON Schema of configurations, for editors");
  make_tokens = app.add_subcommand("make-tokens", "write a file of synthetic tokens for data_file");
  make_tokens->add_option("file", a.make_tokens.file, "the file to write")->required();
  make_tokens->add_option("--tokens", a.make_tokens.tokens, "how many")
      ->required()
      ->check(from_to(1, std::int64_t{1} << 48));
  make_tokens->add_option("--vocabulary", a.make_tokens.vocabulary, "tokens are below it: the model's vocab")
      ->required()
      ->check(from_to(2, std::int64_t{1} << 31));
  make_tokens->add_option("--seed", a.make_tokens.seed, "with measure.seed, the tokens of a sweep without a file");
  make_tokens->add_flag("--force", a.make_tokens.force, "replace the file if it is there");
  init = app.add_subcommand("init", "write a first configuration for this machine");
  add_ranks(*init, "--ranks", a.init.ranks, "number of ranks (default: one per GPU, or by the cores)");
  init->add_option("--backend", a.init.backend, "cpu or cuda (default: cuda where there is a GPU)");
  init->add_option("-o,--output", a.init.output, "the file to write (default: harness.yaml)");
  add_selftest(a.selftest);
  add_doctor(a.doctor);
  add_calibrate(a.calibrate);
}

// Verbs that read result files and nothing else.
void Parser::add_readers(Arguments& a) {
  compare = app.add_subcommand("compare", "compare result files: compare monday.h5 friday.h5");
  compare
      ->add_option("files", a.compare.files,
                   "two result files; three or more: runs of one configuration, which agree or not and prove "
                   "something together")
      ->required();
  compare->add_option("--with", a.compare.with, "runs of the other side: compare a1.h5 a2.h5 a3.h5 --with b1.h5 …");
  compare->add_flag("--reproduce", a.compare.reproduce,
                    "compare each change's effect on its own baseline, not times: for different clusters");
  compare->add_flag("--history", a.compare.history,
                    "take the files as one series of runs: which case changed, between which two?");
  compare->add_option("--fail-on", a.compare.fail_on,
                      "exit code 2: slower[:PERCENT], if a case is proven slower by more (default: the smallest "
                      "effect); not-proven-within:PERCENT, unless each is proven to be no slower than that");
  compare->add_flag("--anyway", a.compare.anyway,
                    "compare even if the models, the numbers of ranks or the settings of the baselines differ");
  add_format(*compare, a.compare.format, {"text", "md", "json"});
  compare->add_flag("-v,--verbose", a.compare.verbose, "text with all rows, not only those that moved most");
  add_view(*compare, a.compare.view);
  export_settings = app.add_subcommand(
      "export", "write settings for a framework or the next sweep: what a result proves, or a planned case");
  export_settings->add_option("file", a.export_settings.file, "a result file, or with --format F a configuration")
      ->required();
  export_settings->add_option("--case", a.export_settings.case_name,
                              "with --format F: all settings of this case, proven or not; else only this case");
  export_settings
      ->add_option("--format", a.export_settings.format,
                   "harness (default): the next configuration; env, megatron, deepspeed or torchtitan: settings "
                   "for it")
      ->check(one_of({"env", "megatron", "deepspeed", "torchtitan", "harness"}));
  trace = app.add_subcommand("trace", "write one profiled step, for chrome://tracing and ui.perfetto.dev");
  trace->add_option("file", a.trace.file, "a result file")->required();
  trace->add_option("--case", a.trace.case_name, "whose step (default: baseline)");
  trace->add_option("-o,--output", a.trace.output,
                    "the trace to write (default: beside the file, as NAME.trace.json; - for the terminal)");
  trace->add_flag("--force", a.trace.force, "overwrite the trace if it exists");
}

void Parser::add_read(ReadOptions& o) {
  read = app.add_subcommand("read",
                            "what is wrong, from what you have: read pretrain.sh train.log nccl.log rank0.json.gz");
  read->add_option(
          "files", o.files,
          "launch scripts, configurations of frameworks, training logs, NCCL_DEBUG=INFO logs, outputs of nccl-tests, "
          "NCCL topology and graph XML, nvidia-smi topo -m, Inspector and Flight Recorder JSON, hostfiles, traces of "
          "the PyTorch profiler and of Nsight Systems, with a configuration of harness: beside its prediction; also "
          ".gz; - for the standard input")
      ->required();
  read->add_option("--set", o.fill, "what the files do not say: ranks=16, global_batch_size=64, hardware=h100-sxm")
      ->type_name("KEY=VALUE")
      ->take_all();
  read->add_option("-o,--output", o.output, "write the job as a configuration, for `plan` and `sweep`");
  read->add_flag("--force", o.force, "overwrite the configuration if it exists");
  add_format(*read, o.format, {"text", "json"});
}

void Parser::add_report(ReportOptions& o) {
  report = app.add_subcommand("report",
                              "write a report on a result file or on the traces of a job, for a browser or for print");
  report->add_option("files", o.files, "a result file, or traces as `read` takes them")->required();
  report->add_option("-o,--output", o.output, "the page (default: beside the file; - for the terminal)");
  add_format(*report, o.format, {"html", "md"});
  report->add_flag("--force", o.force, "overwrite the page if it exists");
  add_cost(*report, o.cost);
}

void Parser::add_selftest(SelftestOptions& o) {
  selftest = app.add_subcommand("selftest", "check a backend on this machine for correctness");
  selftest->add_option("suites", o.suites, "operations, reference or all (the default)")
      ->check(one_of({"operations", "reference", "all"}));
  selftest->add_option("--backend", o.backend, "the backend to check: cuda or cpu");
  selftest->add_option("--only", o.only, "only operations whose case has this in its name: layer_norm, 'fused, 2 x 2'")
      ->take_all();
  selftest->add_flag("--fast", o.fast, "operations at small sizes only");
  selftest->add_flag("--verbose", o.verbose, "name each operation's case before it runs");
  selftest->add_option("--reference", o.reference, "the folder of the reference (tests/reference)");
  selftest->add_option("--threads", o.threads, "threads of the cpu backend (default: all cores)")
      ->check(from_to(0, 4096));
  selftest->add_option("--seed", o.seed, "seed of the operations' numbers (default: a new one each time)");
}

void Parser::add_doctor(DoctorOptions& o) {
  doctor = app.add_subcommand("doctor", "is every node healthy and set up alike? mpirun -np 16 ./harness doctor");
  doctor->add_flag("--strict", o.strict, "exit code 1 for a warning");
  doctor->add_flag("--all", o.all, "also what passed and what does not apply");
  add_format(*doctor, o.format, {"text", "md", "json"});
  doctor
      ->add_option("--stages", o.stages,
                   "of static, nccl, load (default: all); static alone starts no worker and takes seconds")
      ->type_name("LIST");
  auto* against =
      doctor
          ->add_option("--against", o.against,
                       "say first what has changed since the sweep in BEFORE, node by node; with AFTER, up to "
                       "that sweep and not to now")
          ->expected(1, 2)
          ->type_name("BEFORE [AFTER]");
  auto* allreduce = doctor->add_option("--allreduce", o.allreduce, "the least time that an all-reduce of SIZE can take")
                        ->type_name("SIZE")
                        ->excludes(against);
  doctor->add_option("--within", o.within, "of it: is that possible in TIME? exit code 2: no")
      ->type_name("TIME")
      ->needs(allreduce);
  add_ranks(*doctor, "--ranks", o.ranks, "of it: over so many ranks (default: those of one machine)", 2)
      ->needs(allreduce);
  auto* hardware =
      doctor->add_option("--hardware", o.hardware, "of it: on machines of this hardware file, such as h100-sxm")
          ->needs(allreduce);
  allreduce->needs(hardware);
  doctor->add_option("--sysroot", o.sysroot,
                     "look below this folder instead of /; {rank} in it is replaced by each rank's number");
  doctor->add_flag("--list", o.list, "every check: what it asks, where it reads, how bad it may be, where to read on");
  for (const char* of_nodes : {"--against", "--stages", "--allreduce"})
    doctor->get_option("--list")->excludes(doctor->get_option(of_nodes));
}

void Parser::add_calibrate(CalibrateOptions& o) {
  calibrate = app.add_subcommand(
      "calibrate", "measure what predictions rest on: mpirun -np 2 ./harness calibrate configs/laptop.yaml");
  calibrate->add_option("config", o.config, "measure the sizes that this sweep's steps have (default: usual ones)");
  calibrate
      ->add_option("-o,--output", o.output,
                   "write PREFIX-hardware.yaml and PREFIX-calibration.yaml (default: the host's name)")
      ->type_name("PREFIX");
  calibrate->add_option("--backend", o.backend, "cpu or cuda (default: the configuration's, or as the machine is)");
  calibrate->add_option("--time-budget", o.time_budget,
                        "about how long: rounds that fit in, but one at least (default: 1 min)");
  calibrate->add_flag("--force", o.force, "replace the files if they exist");
}

}  // namespace harness::cli
