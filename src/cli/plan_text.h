#pragma once

#include <cstdint>
#include <string>

#include "plan/plan.h"
#include "report/document.h"

namespace harness::cli {

/// Says what is planned, how large a step is, and the peak and the memory that it is held against: a line each.
std::string head_text(const plan::Plan& plan);

/// Which cases run, on what memory and with what traffic; why the others do not; warnings; head_text().
report::Document plan_document(const plan::Plan& plan);

/// How many blocks of what kind, the effect that `rounds` rounds can detect, and the size of the result file.
report::Document schedule_document(const plan::Plan& plan, int rounds, std::int64_t result_bytes);

}  // namespace harness::cli
