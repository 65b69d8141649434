#pragma once

#include <vector>

#include "evidence/answer.h"

namespace harness::cli {

/// Adds to answers that describe a job the step that it should take, by simulation, and sets the measured step beside
/// it where a log has one: as predicted, or which evidence names the cause of the difference. Nothing where the job,
/// its ranks or its GPU are not known.
void add_prediction(std::vector<evidence::Answer>& answers);

}  // namespace harness::cli
