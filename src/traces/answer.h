#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/experiment.h"
#include "evidence/answer.h"
#include "report/document.h"
#include "traces/read.h"

namespace harness::traces {

/// Summarises the traces of one job, or of one job before and after a change. Texts may contain raw names from the
/// file; the writer escapes them.
evidence::Answer answer_of(const std::vector<Report>& reports);

/// Returns the problems in a report, most important first, each with its remedy.
std::vector<std::string> problems_of(const Report& report);

/// Returns the reports as a JSON object: `traces` with the windows of docs/read.md, `mean`, `waiting`, `late`,
/// `bandwidths`; with two reports also `before`, which holds the same for the earlier one.
evidence::Value json_of(const std::vector<Report>& reports);

/// Compares the parts of a step before and after a change, largest difference first: a label, and a text with the
/// kernel, collective or cause that changed most. Leaves out parts that changed by less than 1 % of the step.
std::vector<std::pair<std::string, std::string>> differences_of(const Report& before, const Report& after);

// ---- texts shared by the writers of answers

/// "92.5 ms".
std::string ms(double seconds);

/// Returns at most the first `most` bytes of a name from the file, which may contain a path.
std::string short_name(const std::string& name, std::size_t most = 60);

/// Returns notes on how to read a report's figures, in full sentences.
std::vector<std::string> notes_of(const Report& report);

/// A part of the step, measured and predicted, in seconds. Parts that a trace cannot separate are merged: all
/// communication if no axis is known, including waiting if that is not known either.
struct PartBeside {
  std::string name;
  double measured_s = 0, predicted_s = 0;
  double excess_s() const { return measured_s - predicted_s; }
};

/// A traced step and the predicted step of the same job.
struct Beside {
  std::string hardware;
  int ranks = 0;
  double measured_s = 0, predicted_s = 0;
  std::optional<double> measured_mfu, predicted_mfu;  // absent: peak FLOP/s unknown
  std::vector<PartBeside> parts;                      // largest excess first; they add up to both steps
  std::vector<std::string> causes;                    // likely causes of the excess, each with its remedy
};

/// Predicts a configuration's baseline on the traced number of ranks, without faults and on full nodes, and compares it
/// with the traced step. `experiment` must be loaded with config::predict. Throws Error if nothing can be predicted.
Beside beside_prediction(const Report& report, config::Experiment experiment);

/// Returns the comparison as an answer, with all its numbers as JSON under `prediction`.
evidence::Answer answer_of(const Beside& beside, const std::string& configuration);

/// Builds the report on one job's traces, or on those before and after a change: where the step goes, its timeline,
/// late ranks, collectives and kernels. Texts may contain raw names from the files; the writers of a Document escape
/// them.
report::Document make_report(const std::vector<Report>& reports);

}  // namespace harness::traces
