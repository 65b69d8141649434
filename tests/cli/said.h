#pragma once

// What the tests of all verbs use.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/verbs.h"
#include "config/experiment.h"
#include "job/sim/simulated_job.h"
#include "store/result_file.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/sample_results.h"

namespace harness::cli {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// The outcome of a command or a verb: its exit code and what it printed.
struct Said {
  int code = -1;
  std::string out, err;

  std::string all() const { return out + err; }
  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

/// Runs a command in this process, with `more` at its end.
inline Said say(std::vector<std::string> arguments, const std::vector<std::string>& more = {}) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  std::ostringstream out, err;
  const int code = run_cli(arguments, out, err);
  return {code, out.str(), err.str()};
}

/// Calls verb(out, err). An Error is its message and exit code.
template <class Verb>
Said outcome_of(const Verb& verb) {
  std::ostringstream out, err;
  try {
    const int code = verb(out, err);
    return {code, out.str(), err.str()};
  } catch (const Error& error) {
    return {error.exit_code(), out.str(), error.what()};
  }
}

using Commands = std::vector<std::vector<std::string>>;

/// The options of a prediction, which replaces an earlier one.
inline SweepOptions prediction(const std::string& config, const std::string& output, int ranks,
                               const std::vector<std::string>& overrides = {}) {
  SweepOptions options;
  options.config = config;
  options.output = output;
  options.overrides = overrides;
  options.ranks = ranks;
  options.force = true;
  return options;
}

/// Runs `sweep` of a prediction as on a machine with one rank and no GPU.
inline Said simulate(const SweepOptions& options) {
  simjob::SimulatedJob here(config::load_experiment(options.config), machine::Topology::node_by_node(1, 1));
  return outcome_of([&](std::ostream& out, std::ostream& err) { return sweep(here, options, out, err); });
}

/// The path of a file in configs/.
inline std::string shipped(const std::string& name) {
  return test::source_dir() + "/configs/" + name;
}

/// Returns the text with each paragraph on one line, however it was wrapped.
inline std::string unwrapped(std::string text) {
  for (std::size_t at; (at = text.find("\n  ")) != std::string::npos;) text.replace(at, 3, " ");
  return text;
}

class Readers : public ::testing::Test {
 protected:
  std::string write(const std::string& name, store::Result result, double factor = 1) {
    result.run_uuid = name;
    store::write_result(folder_ / name, test::samples::scaled(std::move(result), factor));
    return folder_ / name;
  }
  test::TemporaryFolder folder_;
};

}  // namespace harness::cli
