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
    bool repeat_batch = false;  // every step trains on the batch of step 0
  };
  /// Throws Error.
  OneRank(const backend::Backend& backend, const config::Model& model, const config::Settings& settings,
          const Options& options);

  void run(int steps);
  /// Mean losses of all steps so far.
  std::vector<float> losses();
  std::vector<float> read(const std::string& buffer, std::int64_t offset, std::int64_t count);
  std::vector<float> read(const std::string& buffer);  // whole
  std::vector<std::string> warnings() const { return executable_->warnings(); }
  const program::Program& program() const { return set_.roles.front(); }

 private:
  program::BufferId find(const std::string& buffer) const;

  program::ProgramSet set_;
  backend::ExecutableRequest request_;
  std::unique_ptr<program::InputSource> inputs_;
  std::unique_ptr<backend::Executable> executable_;
  int done_ = 0;
};

}  // namespace harness::selftest
