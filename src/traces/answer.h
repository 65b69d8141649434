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

/// Says what one job's traces hold, or those of before and after a change, for people. Texts hold names of the file as
/// they are: the writer escapes them.
evidence::Answer answer_of(const std::vector<Report>& reports);

/// Names what is wrong in a report, the most telling first, each with what to do.
std::vector<std::string> problems_of(const Report& report);

/// The reports as a JSON object: `traces` with the windows of docs/read.md, `mean`, `waiting`, `late`, `bandwidths`
/// and, of two reports, the same of the earlier one in `before`.
evidence::Value json_of(const std::vector<Report>& reports);

/// The parts of a step before and after a change, the largest difference first: a label and a text, with the kernel,
/// collective or cause that changed most. Parts that changed by less than 1 % of the step are left out.
std::vector<std::pair<std::string, std::string>> differences_of(const Report& before, const Report& after);

// ---- words that the writers of answers share

/// "92.5 ms".
std::string ms(double seconds);

/// The beginning of a name of the file, which may hold a path: at most 60 bytes of it.
inline constexpr std::size_t longest_name = 60;
std::string short_name(const std::string& name, std::size_t most = longest_name);

/// The share of the kernels' time in kernels without a class.
double unclassified_share(const Report& report);

/// How to read a report's figures, in whole sentences.
std::vector<std::string> notes_of(const Report& report);

/// A part of the step, measured and predicted, in seconds. Parts that a trace does not tell apart are one:
/// communication of all axes where no axis is known, with the waiting in it where that is not.
struct PartBeside {
  std::string name;
  double measured_s = 0, predicted_s = 0;
  double excess_s() const { return measured_s - predicted_s; }
};

/// A traced step beside the step that is predicted of the same job.
struct Beside {
  std::string hardware, calibration;
  int ranks = 0;
  double measured_s = 0, predicted_s = 0;
  std::optional<double> measured_mfu, predicted_mfu;  // absent: the peak is not known
  std::vector<PartBeside> parts;                      // the largest excess first; they add up to the steps
  std::vector<std::string> causes;                    // what the excess is the picture of, each with what to do
};

/// Predicts the baseline of a configuration on as many ranks as the traces say, healthy and on full nodes, and sets the
/// traced step beside it. `experiment`: loaded with config::predict. Throws Error where nothing can be predicted.
Beside beside_prediction(const Report& report, config::Experiment experiment);

/// For people, and with all its numbers as JSON: `prediction`.
evidence::Answer answer_of(const Beside& beside, const std::string& configuration);

/// The report on one job's traces, or on those of before and after a change: where the step goes, its timeline, the
/// ranks that the others wait for, collectives and kernels. Texts hold names of the files as they are: the writers of a
/// Document escape them.
report::Document make_report(const std::vector<Report>& reports);

}  // namespace harness::traces
