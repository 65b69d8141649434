#include "cli/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "base/error.h"
#include "cli/verbs.h"
#include "cli/version.h"
#include "launch/job.h"

namespace harness {
namespace {

struct Arguments {
  SweepOptions sweep;
  PlanOptions plan;
  ShowOptions show;
  std::string rounds, time_budget, seed, backend;  // sugar for --set

  std::vector<std::string> with_sugar(std::vector<std::string> overrides) const {
    const auto add = [&](const char* key, const std::string& value) {
      if (!value.empty()) overrides.push_back(fmt::format("{}={}", key, value));
    };
    add("backend", backend);
    add("measure.rounds", rounds);
    add("measure.time_budget", time_budget);
    add("measure.seed", seed);
    return overrides;
  }
};

void add_common(CLI::App& verb, std::string& config, std::vector<std::string>& overrides,
                std::vector<std::string>& only, Arguments& a) {
  verb.add_option("config", config, "the configuration, such as configs/laptop.yaml")->required();
  verb.add_option("--set", overrides, "override a key: measure.rounds=4, micro_batch_size=2, backend=sim")->take_all();
  verb.add_option("--only", only, "measure only these cases or variables (and the baseline)")->take_all();
  verb.add_option("--backend", a.backend, "cpu, cuda or sim");
  verb.add_option("--rounds", a.rounds, "number of rounds");
  verb.add_option("--time-budget", a.time_budget, "fit the rounds into this time: 10 min");
  verb.add_option("--seed", a.seed, "of the weights, the tokens and the order of blocks");
}

struct Parser {
  CLI::App app{
      "Finds out why a GPU training cluster is slow: runs real GPT training steps, changes one thing at a time, "
      "and says what moved and how sure it is.",
      "harness"};
  CLI::App *sweep, *plan, *show;

  explicit Parser(Arguments& a) {
    app.require_subcommand(1);
    app.set_version_flag("--version", tool_version());
    sweep = app.add_subcommand("sweep", "measure: mpirun -np 4 ./harness sweep configs/laptop.yaml");
    add_common(*sweep, a.sweep.config, a.sweep.overrides, a.sweep.only, a);
    sweep->add_option("-o,--output", a.sweep.output, "the result file (default: as the configuration says)");
    sweep->add_option("--wrap", a.sweep.wrap,
                      "start the timed workers under this command: 'nsys profile -o rank%q{HARNESS_RANK}'");
    sweep->add_flag("--force", a.sweep.force, "overwrite the result file if it exists");
    sweep->add_flag("--resume", a.sweep.resume, "go on with an interrupted result file");
    plan = app.add_subcommand("plan", "what would run, will it fit, what can it resolve; needs no MPI");
    add_common(*plan, a.plan.config, a.plan.overrides, a.plan.only, a);
    plan->add_option("--ranks", a.plan.ranks, "number of ranks to plan for")->check(CLI::Range(1, 1 << 20));
    plan->add_option("--like", a.plan.like, "a result file of this configuration to take times from");
    show = app.add_subcommand("show", "the table of a result file");
    show->add_option("file", a.show.file, "a result file")->required();
    show->add_option("--format", a.show.format, "text, md, csv or json")
        ->check(CLI::IsMember({"text", "md", "csv", "json"}));
  }
};

// Parses; what goes wrong or asks for help ends here with its exit code.
bool parse(Parser& parser, const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err, int& code) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // CLI11 takes them last first
  try {
    parser.app.parse(reversed);
    return true;
  } catch (const CLI::ParseError& e) {
    code = parser.app.exit(e, out, err) == 0 ? 0 : 1;
    return false;
  }
}

int run_alone(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  Arguments a;
  Parser parser(a);
  int code = 0;
  if (!parse(parser, arguments, out, err, code)) return code;
  a.plan.overrides = a.with_sugar(a.plan.overrides);
  return parser.plan->parsed() ? plan(a.plan, out) : show(a.show, out);
}

// Every rank comes here; only rank 0 reads the arguments, speaks and decides, so that a mistake costs one message and
// not one per rank.
int run_job(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  const auto job = Job::join();
  int code = 1;
  if (job->rank() != 0) {
    code = job->follow();
  } else {
    try {
      Arguments a;
      Parser parser(a);
      if (parse(parser, arguments, out, err, code)) {
        a.sweep.overrides = a.with_sugar(a.sweep.overrides);
        code = sweep(*job, a.sweep, out, err);
      }
    } catch (const Error& e) {
      err << "harness: " << e.what() << "\n";
      code = e.exit_code();
    } catch (const std::exception& e) {
      err << "harness: " << e.what() << "\n";
      code = 1;
    }
    out.flush();
    err.flush();
    job->finish(code);
  }
  job->leave();
  return code;
}

}  // namespace

int run_cli(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  try {
    if (!arguments.empty() && arguments[0] == "worker") return worker_main();
    const bool help =
        std::any_of(arguments.begin(), arguments.end(), [](const auto& x) { return x == "-h" || x == "--help"; });
    if (!arguments.empty() && arguments[0] == "sweep" && !help) return run_job(arguments, out, err);
    return run_alone(arguments, out, err);
  } catch (const Error& e) {
    if (*e.what() != '\0') err << "harness: " << e.what() << "\n";  // empty: another rank says it
    return e.exit_code();
  } catch (const std::exception& e) {
    err << "harness: " << e.what() << "\n";
    return 1;
  }
}

}  // namespace harness
