#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace harness::selftest {

/// A training job of one rank, made ready to step: what whole-step checks run.
class OneRank {
 public:
  struct Options {
    std::uint64_t seed = 1;
    int threads = 1;
    double timeout_s = 120;     // for one step
    double tuning_s = 0;        // about how long the backend may time its choices first; 0: it takes its defaults
    backend::Tuning known{};    // choices that were timed before
    bool repeat_batch = false;  // every step trains on the batch of step 0
  };
  /// Throws Error.
  OneRank(const backend::Backend& backend, const config::Model& model, const config::Settings& settings,
          const Options& options);

  /// The tuned choices of the job, and how long tuning took.
  backend::Tuning tuning() const { return request_.tuning ? *request_.tuning : backend::Tuning{}; }
  double tuned_s() const { return tuned_s_; }

  /// Seconds of each step.
  std::vector<double> run(int steps);
  /// Between these two the device's clocks and power are sampled.
  void begin_watch() { executable_->begin_watch(); }
  machine::GpuStatistics end_watch() { return executable_->end_watch(); }
  std::vector<program::Interval> run_profiled();
  std::vector<std::string> kernels() const { return executable_->kernels(); }
  /// Gives the step's memory back. Nothing can be run or read any more.
  void end() { executable_.reset(); }
  /// Mean losses of all steps so far.
  std::vector<float> losses();
  std::vector<float> read(const std::string& buffer, std::int64_t offset, std::int64_t count);
  std::vector<float> read(const std::string& buffer);  // whole
  std::vector<std::string> warnings() const { return executable_->warnings(); }
  const program::Program& program() const { return set_.roles.front(); }
  const program::ProgramSet& programs() const { return set_; }
  const backend::ExecutableRequest& request() const { return request_; }

 private:
  void tune(const backend::Backend& backend, const Options& options);
  program::BufferId find(const std::string& buffer) const;

  program::ProgramSet set_;
  backend::ExecutableRequest request_;
  std::unique_ptr<program::InputSource> inputs_;
  std::unique_ptr<backend::Executable> executable_;
  double tuned_s_ = 0;
  int done_ = 0;
};

}  // namespace harness::selftest
