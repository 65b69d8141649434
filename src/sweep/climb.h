#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/summary.h"
#include "config/experiment.h"
#include "store/result.h"

namespace harness::sweep {

/// A climb repeats a sweep from the best setting proven so far, until no single change is proven to help. Each stage is
/// a sweep of its own, described by overrides of the configuration it began with, so that its file says how to measure
/// it again. The stages share the error: each spends 1 / `stages` of it, declared before the first. Pure.
class Climb {
 public:
  /// `start`: as configured; `only`: as in a sweep. Throws Error where it cannot be climbed: it sweeps nothing but one
  /// change at a time counts here, or it sweeps what is no setting to improve (the number of ranks).
  Climb(const config::Experiment& start, const std::vector<std::string>& only, int stages);

  /// How many variables it may change.
  int variables() const { return static_cast<int>(values_.size()); }
  /// Of the next stage, over those of the start.
  std::vector<std::string> overrides() const;
  /// What has been climbed so far.
  const std::vector<store::ResultStage>& path() const { return path_; }
  /// The proven settings, as overrides; empty at the start.
  std::vector<std::string> settings() const;

  /// Takes a finished stage and goes on from its best proven change. "" if there is one, else why the climb ends.
  std::string take(const store::Result& result, const analysis::Summary& summary, const std::string& path);

 private:
  std::map<std::string, std::vector<std::string>> values_;  // to try, by variable; the first is where it started
  std::map<std::string, std::string> changed_;              // by variable
  double confidence_;                                       // of a stage
  std::vector<store::ResultStage> path_;
};

}  // namespace harness::sweep
