#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "cli/best.h"
#include "cli/predicted.h"
#include "cli/verbs.h"
#include "plan/plan.h"
#include "report/document.h"
#include "report/json.h"

namespace harness::cli {

/// Says what is planned, how large a step is, and the peak and the memory that it is held against: a line each.
std::vector<std::string> head_lines(const plan::Plan& plan);
/// Which cases run, on what memory and with what traffic; why the others do not; warnings; head_lines(); published
/// steps like the baseline. `predicted`: as predict_cases() gives it.
report::Document plan_document(const plan::Plan& plan, const std::vector<PredictedCase>& predicted);
/// How many blocks of what kind, the effect that `rounds` rounds can detect, and the size of the result file.
report::Section schedule_section(const plan::Plan& plan, int rounds);
/// The fastest combinations, and how many of the others there are, by what became of them.
report::Section best_section(const plan::Plan& plan, const Best& best);
/// The FLOP, bytes and least time of each operation of a case; the plan has hardware.
report::Section budget_section(const plan::Plan& plan, const plan::PlannedCase& planned);

/// Puts how far a prediction may be relied on into its JSON; `of_change`: also the error of changes.
void put_trust(const sim::Trust& trust, bool of_change, report::Json& out);
/// `plan --format json`. docs/json.md has its fields.
std::string plan_json(const plan::Plan& plan, const std::vector<PredictedCase>& predicted);
/// JSON of `plan --best`.
std::string best_json(const plan::Plan& plan, const Best& best);

/// `plan FILE.h5 --hardware NAME`: what the steps of a result would take on other hardware.
int plan_upgrade(const PlanOptions& options, std::ostream& out);

/// Where the times of blocks come from, as typed; all "": from nowhere.
struct TimeOptions {
  std::string like;          // a result file
  std::string assume_mfu;    // "40%", of every case
  std::string assume_setup;  // "45 s", of every block
};

struct PlannedTime {
  int rounds = 0;                  // that the time budget allows; all, where there is none or no times are known
  std::vector<std::string> lines;  // how long these take, in GPU hours and money too where those are known
};
/// Throws Error if the result file tells nothing of this plan (another backend, workload, model or number of ranks), if
/// an assumption cannot be used, or if the time budget allows too few rounds for any verdict.
PlannedTime planned_time(const plan::Plan& plan, const TimeOptions& options);

/// What to give for the time of this plan's blocks: "an earlier result (--like RESULT.h5) or an MFU (--assume-mfu
/// 40%)".
std::string sources_of_time(const plan::Plan& plan);

/// Seconds of a step by the name of its case.
using StepTimes = std::map<std::string, double>;
/// How long a block and the sweep take if steps take what was predicted; nothing where that says nothing.
std::vector<std::string> expected_time(const plan::Plan& plan, const StepTimes& predicted);

}  // namespace harness::cli
