#pragma once

#include <CLI/CLI.hpp>

#include <iosfwd>
#include <string>
#include <vector>

#include "cli/verbs.h"

namespace harness::cli {

/// Where the values of the command line go.
struct Arguments {
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
  std::string rounds, time_budget, seed, backend, hardware;  // sugar for --set
  std::string min_bytes, max_bytes, step_factor;  // sugar for a sweep of message_size alone, as nccl-tests has it

  /// Adds what the sugar says to the --set and --only of a verb. Throws Error for sizes without an end.
  void add_sugar(std::vector<std::string>& overrides, std::vector<std::string>& only) const;
};

/// The command line: every verb with its options.
struct Parser {
  CLI::App app{
      "Finds out why a GPU training cluster is slow: runs real GPT training steps, changes one setting at a time, "
      "and reports the effect of each with its confidence interval.",
      "harness"};
  CLI::App *sweep, *plan, *show, *read, *report, *selftest, *compare, *export_settings, *trace, *make_tokens,
      *variables, *init, *doctor, *calibrate;

  /// Its values go to `a`, which outlives it.
  explicit Parser(Arguments& a);
  std::vector<std::string> verbs() const;

 private:
  void add_readers(Arguments& a);
  void add_read(ReadOptions& o);
  void add_report(ReportOptions& o);
  void add_selftest(SelftestOptions& o);
  void add_doctor(DoctorOptions& o);
  void add_calibrate(CalibrateOptions& o);
};

/// Reads the command line. Returns the help that it asks for, else "". Throws Error.
std::string parse(Parser& parser, const std::vector<std::string>& arguments);

}  // namespace harness::cli
