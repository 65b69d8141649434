#include "cli/arguments.h"

#include <fmt/format.h>

#include <initializer_list>
#include <ostream>
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

void add_view(CLI::App& verb, ViewOptions& view) {
  verb.add_option("--columns", view.columns, "only these columns of the table: step,change,verdict")->delimiter(',');
  verb.add_option("--sort", view.sort, "order (of the file), name or change")
      ->check(CLI::IsMember({"order", "name", "change"}));
  verb.add_option("--color", view.color, "auto, always or never: verdicts in colour (auto: on a terminal)")
      ->check(CLI::IsMember({"auto", "always", "never"}));
}

void add_cost(CLI::App& verb, CostOptions& cost) {
  verb.add_option("--cost", cost.per_gpu_hour,
                  "price of a GPU for an hour: 2.50; estimates the cost of a training run");
  verb.add_option("--run-tokens", cost.run_tokens, "tokens of that training run: 300e9");
  verb.add_option("--currency", cost.currency, "currency of the price (default USD)");
}

// "--ranks: Value 0 not in range 1 to 1048576", split at the words of the library; nothing if it has not all of them.
std::vector<std::string> split_at(std::string_view text, std::initializer_list<std::string_view> words) {
  std::vector<std::string> parts;
  for (const std::string_view word : words) {
    const std::size_t at = text.find(word);
    if (at == std::string_view::npos) return {};
    parts.emplace_back(text.substr(0, at));
    text.remove_prefix(at + word.size());
  }
  parts.emplace_back(text);
  return parts;
}

// The option, what was found, and what is allowed, which the library says in many ways.
std::string in_our_words(const CLI::ParseError& error) {
  std::string text = error.what();
  if (const auto parts = split_at(text, {": ", " required "}); !parts.empty() && text.ends_with(" missing"))
    return fmt::format("{} needs a value", parts[0]);
  if (const auto parts = split_at(text, {"Could not convert: ", " = "}); !parts.empty())
    return fmt::format("{}: found {}; expected a number", parts[1], quote(parts[2]));
  if (const auto parts = split_at(text, {": At Most 1 required but received "}); !parts.empty())
    return fmt::format("{} is given {} times; give it once", parts[0], parts[1]);
  if (const auto parts = split_at(text, {": Value ", " not in range "}); !parts.empty()) {
    const char* kind = number_in<std::int64_t>(parts[1]) ? "" : "a whole number, ";
    return fmt::format("{}: found {}; allowed: {}{}", parts[0], quote(parts[1]), kind, parts[2]);
  }
  if (const auto parts = split_at(text, {": ", " not in {", "}"}); !parts.empty()) {
    const std::string allowed = replaced(parts[2], {{',', ", "}});
    return fmt::format("{}: found {}; allowed: {}", parts[0], quote(parts[1]), allowed);
  }
  return text;
}

// A hint for arguments that a verb does not know; "" if nothing is near.
std::string nearest_option(CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> verbs = app.get_subcommands();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr || verbs.empty()) return "";
  std::vector<std::string> names;
  for (const CLI::Option* option : verbs.front()->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string> words = app.remaining(true);  // as typed
  std::string known, near;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string here = meaning_of_nccl_tests(words[i], i + 1 < words.size() ? words[i + 1] : "");
    if (!here.empty()) known += "; " + here;
    if (here.empty() && words[i].starts_with("--") && near.empty()) near = did_you_mean(nearest(words[i], names));
  }
  return known + near;
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
  sweep->add_option("--ranks", a.sweep.ranks, "of a prediction (--backend sim): number of ranks")
      ->check(CLI::Range(1, 1 << 20));
  sweep->add_option("--ranks-per-node", a.sweep.ranks_per_node, "of a prediction: ranks that share a node")
      ->check(CLI::Range(1, 1 << 20));
  sweep
      ->add_option("--require", a.sweep.require,
                   "healthy: measure nothing, and end with exit code 2, where doctor finds a failure on a node")
      ->check(CLI::IsMember({"healthy"}));
  sweep->add_option("--sysroot", a.sweep.sysroot, "root directory that the node checks read instead of /");
  sweep->get_option("config")->required(false);
  auto* quiet = sweep->add_flag("--quiet", a.sweep.quiet, "no progress: only the result, warnings and errors");
  sweep->add_flag("-v,--verbose", a.sweep.verbose, "progress block by block; the result with settings and formulas")
      ->excludes(quiet);
  sweep
      ->add_option("--resume", a.resume,
                   "continue an interrupted result file; with FILE, nothing else is needed, else -o names it. With "
                   "FILE and --rounds N, add rounds to a complete one")
      ->expected(0, 1)
      ->type_name("[FILE]");
  sweep->add_flag("--trust-file", a.sweep.trust_file,
                  "with --resume FILE of another user's: let its `env` load code, as LD_PRELOAD does");
  plan = app.add_subcommand("plan",
                            "show what would run, whether it fits, and which effects it can resolve; needs no MPI");
  add_common(*plan, a.plan.config, a.plan.overrides, a.plan.only, a);
  plan->get_option("config")->description(
      "the configuration, such as configs/laptop.yaml; with --hardware also a result file, to be moved to it");
  plan->add_option("--ranks", a.plan.ranks, "number of ranks to plan for (default: as many as mpirun starts)")
      ->check(CLI::Range(1, 1 << 20));
  plan->add_option("--ranks-per-node", a.plan.ranks_per_node,
                   "ranks that share a node, which are numbered node by node: says how many nodes each group spans")
      ->check(CLI::Range(1, 1 << 20));
  plan->add_option("--format", a.plan.format, "text, md or json")->check(CLI::IsMember({"text", "md", "json"}));
  add_view(*plan, a.plan.view);
  plan->add_option(
          "--best", a.plan.best,
          "predict all combinations of the values that are swept instead, and name as many of the fastest that fit")
      ->check(CLI::Range(1, 1000));
  plan->add_option("--like", a.plan.like, "a result file of this configuration, to estimate the time from");
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
  show->add_option("--format", a.show.format, "text, md, csv, long-csv (a line per number) or json")
      ->check(CLI::IsMember({"text", "md", "csv", "long-csv", "json"}));
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
  variables->add_option("--format", a.variables.format, "text or md (docs/variables.md)")
      ->check(CLI::IsMember({"text", "md"}));
  variables->add_flag("--schema", a.variables.schema, "a JSON Schema of configurations, for editors");
  make_tokens = app.add_subcommand("make-tokens", "write a file of synthetic tokens for data_file");
  make_tokens->add_option("file", a.make_tokens.file, "the file to write")->required();
  make_tokens->add_option("--tokens", a.make_tokens.tokens, "how many")
      ->required()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 48));
  make_tokens->add_option("--vocabulary", a.make_tokens.vocabulary, "tokens are below it: the model's vocab")
      ->required()
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{1} << 31));
  make_tokens->add_option("--seed", a.make_tokens.seed, "with measure.seed, the tokens of a sweep without a file");
  make_tokens->add_flag("--force", a.make_tokens.force, "replace the file if it is there");
  init = app.add_subcommand("init", "write a first configuration for this machine");
  init->add_option("--ranks", a.init.ranks, "number of ranks (default: one per GPU, or by the cores)")
      ->check(CLI::Range(1, 1 << 20));
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
  compare->add_option("--format", a.compare.format, "text, md or json")->check(CLI::IsMember({"text", "md", "json"}));
  compare->add_flag("-v,--verbose", a.compare.verbose, "text with all rows, not only those that moved most");
  add_view(*compare, a.compare.view);
  export_settings = app.add_subcommand(
      "export", "write settings for a framework or the next sweep: what a result proves, or a planned case");
  export_settings->add_option("file", a.export_settings.file, "a result file, or with --format F a configuration")
      ->required();
  export_settings->add_option("--case", a.export_settings.case_name,
                              "with --format F: all settings of this case, proven or not; else only this case");
  export_settings
      ->add_option(
          "--format", a.export_settings.format,
          "harness (default): the next configuration; env, megatron, deepspeed, torchtitan or pytorch: settings "
          "for it")
      ->check(CLI::IsMember({"env", "megatron", "deepspeed", "torchtitan", "pytorch", "harness"}));
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
  read->add_option("--format", o.format, "text or json")->check(CLI::IsMember({"text", "json"}));
}

void Parser::add_report(ReportOptions& o) {
  report = app.add_subcommand("report",
                              "write a report on a result file or on the traces of a job, for a browser or for print");
  report->add_option("files", o.files, "a result file, or traces as `read` takes them")->required();
  report->add_option("-o,--output", o.output, "the page (default: beside the file; - for the terminal)");
  report->add_option("--format", o.format, "html or md")->check(CLI::IsMember({"html", "md"}));
  report->add_flag("--force", o.force, "overwrite the page if it exists");
  add_cost(*report, o.cost);
}

void Parser::add_selftest(SelftestOptions& o) {
  selftest = app.add_subcommand("selftest", "check a backend on this machine for correctness");
  selftest->add_option("suites", o.suites, "operations, reference or all (the default)")
      ->check(CLI::IsMember({"operations", "reference", "all"}));
  selftest->add_option("--backend", o.backend, "the backend to check: cuda or cpu");
  selftest->add_option("--oracle", o.oracle, "the backend to compare operations with: cpu");
  selftest->add_option("--only", o.only, "only operations whose case has this in its name: layer_norm, 'fused, 2 x 2'")
      ->take_all();
  selftest->add_flag("--fast", o.fast, "operations at small sizes only");
  selftest->add_flag("--verbose", o.verbose, "name each operation's case before it runs");
  selftest->add_option("--reference", o.reference, "the folder of the reference (tests/reference)");
  selftest->add_option("--threads", o.threads, "threads of the cpu backend (default: all cores)")
      ->check(CLI::Range(0, 4096));
  selftest->add_option("--seed", o.seed, "seed of the operations' numbers (default: a new one each time)");
  selftest->add_option("-o,--output", o.output, "write the table to this file too, and FILE.jsonl beside it");
}

void Parser::add_doctor(DoctorOptions& o) {
  doctor = app.add_subcommand("doctor", "is every node healthy and set up alike? mpirun -np 16 ./harness doctor");
  doctor->add_flag("--strict", o.strict, "exit code 1 for a warning");
  doctor->add_flag("--all", o.all, "also what passed and what does not apply");
  doctor->add_option("--format", o.format, "text, md or json")->check(CLI::IsMember({"text", "md", "json"}));
  doctor->add_option("--explain", o.explain, "who reads a variable that looks like NCCL's, and how a sweep sets it")
      ->type_name("NAME");
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
  doctor->add_option("--ranks", o.ranks, "of it: over so many ranks (default: as many as there are GPUs)")
      ->check(CLI::Range(2, 1 << 20))
      ->needs(allreduce);
  doctor->add_option("--hardware", o.hardware, "of it: on machines of this hardware file, such as h100-sxm")
      ->needs(allreduce);
  doctor->add_option("--sysroot", o.sysroot,
                     "look below this folder instead of /; {rank} in it is replaced by each rank's number");
  doctor->add_flag("--list", o.list, "every check: what it asks, where it reads, how bad it may be, where to read on");
  for (const char* of_nodes : {"--against", "--stages", "--allreduce"}) {
    for (const char* alone : {"--explain", "--list"}) doctor->get_option(alone)->excludes(doctor->get_option(of_nodes));
  }
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

bool parse(Parser& parser, const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err, int& code) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // CLI11 takes them last first
  try {
    parser.app.parse(reversed);
    return true;
  } catch (const CLI::ParseError& e) {
    std::ostringstream help, wrong;
    code = parser.app.exit(e, help, wrong) == 0 ? 0 : 1;
    std::string text = wrong.str();
    if (const auto at = text.find(e.what()); at != std::string::npos && code != 0) {
      text.replace(at, std::string(e.what()).size(), escaped(in_our_words(e) + nearest_option(parser.app, e)));
    }
    out << help.str();
    err << (code == 0 ? "" : "harness: ") + escaped_lines(text);
    return false;
  }
}

}  // namespace harness::cli
