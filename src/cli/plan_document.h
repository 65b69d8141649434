#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "cli/best.h"
#include "cli/predicted.h"
#include "cli/verbs.h"
#include "plan/plan.h"
#include "report/document.h"

namespace harness::cli {

/// What is planned, how large a step is, and the peak and the memory that it is held against: a line each.
std::vector<std::string> head_lines(const plan::Plan& plan);
/// Which cases run, on what memory and with what traffic; why the others do not; warnings; head_lines().
report::Document plan_document(const plan::Plan& plan);
/// How many blocks of what kind, the effect that `rounds` rounds can detect, and the size of the result file.
report::Section schedule_section(const plan::Plan& plan, int rounds);
/// The fastest combinations, and how many of the others there are, by what became of them.
report::Section best_section(const plan::Plan& plan, const Best& best);
/// The FLOP, bytes and least time of each operation of a case; the plan has hardware.
report::Section budget_section(const plan::Plan& plan, const plan::PlannedCase& planned);

/// `plan --format json`. docs/json.md has its fields.
std::string plan_json(const plan::Plan& plan, const std::vector<PredictedCase>& predicted);
/// JSON of `plan --best`.
std::string best_json(const plan::Plan& plan, const Best& best);

/// `plan FILE.h5 --hardware NAME`: what the steps of a result would take on other hardware.
int plan_upgrade(const PlanOptions& options, std::ostream& out);

}  // namespace harness::cli
