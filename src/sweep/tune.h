#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/text.h"
#include "job/job.h"
#include "plan/plan.h"
#include "sweep/blocks.h"
#include "sweep/probe.h"
#include "sweep/progress.h"

namespace harness::sweep {

/// Tuned choices kept between sweeps, in one file (backend/backend.h) per GPU model and versions of the libraries,
/// in $XDG_CACHE_HOME/harness (else ~/.cache/harness). The cache is a convenience: a file that cannot be read is
/// ignored.
class TuningCache {
 public:
  /// Either "": nothing is kept.
  TuningCache(const std::string& device, const std::string& libraries);
  /// Empty if there is none, or none that can be read.
  backend::Tuning read() const;
  /// "" or why it could not be written. Replaces the file as a whole.
  std::string write(const backend::Tuning& tuning) const;

 private:
  std::string path_;
};

/// The choices that untimed workers made by timing the alternatives of the backend (on GPUs: algorithms of matrix
/// products). All blocks use them.
struct TuningOutcome {
  NameValues tuning;
  std::vector<std::string> warnings;
  bool interrupted = false;
};
TuningOutcome tune(job::Job& job, const plan::Plan& plan, const Machine& machine, ProgressLine& progress);

}  // namespace harness::sweep
