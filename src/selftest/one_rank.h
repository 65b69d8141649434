#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace harness {

/// A training job of one rank, made ready to step: what whole-step checks run.
class OneRank {
 public:
  struct Options {
    std::uint64_t seed = 1;
    int threads = 1;
    double timeout_s = 120;  // for one step
    bool tuned = false;      // times the backend's choices first: slow, and only for what is timed
  };
  /// Throws Error.
  OneRank(const Backend& backend, const Model& model, const Settings& settings, const Options& options);

  /// Seconds of each step.
  std::vector<double> run(int steps);
  std::vector<Interval> run_profiled();
  /// Mean losses of all steps so far.
  std::vector<float> losses();
  std::vector<float> read(const std::string& buffer, std::int64_t offset, std::int64_t count);
  std::vector<float> read(const std::string& buffer);  // whole
  std::vector<std::string> warnings() const { return executable_->warnings(); }
  const Program& program() const { return set_.roles.front(); }
  const ProgramSet& programs() const { return set_; }
  const ExecutableRequest& request() const { return request_; }

 private:
  BufferId find(const std::string& buffer) const;

  ProgramSet set_;
  ExecutableRequest request_;
  std::unique_ptr<InputSource> inputs_;
  std::unique_ptr<Executable> executable_;
  int done_ = 0;
};

}  // namespace harness
