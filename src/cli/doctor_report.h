#pragma once

#include <optional>
#include <string>

#include "doctor/against.h"
#include "doctor/diagnosis.h"
#include "report/document.h"

namespace harness::cli {

/// What `harness doctor` prints: in one sentence how things stand, a line for each distinct finding, worst first, and
/// what to do. `all`: also what passed and what does not apply.
report::Document doctor_document(const doctor::Diagnosis& diagnosis, bool all);

/// The same as one JSON object: version, counts, findings (each with its check, verdict, evidence, remedy, docs and the
/// names of its nodes).
/// changes: what changed since an earlier time, as `since`.
std::string doctor_json(const doctor::Diagnosis& diagnosis, const std::optional<doctor::Changes>& changes = {});

}  // namespace harness::cli
