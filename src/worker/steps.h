#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"

namespace harness::worker {

/// The steps of an initialised Executable, run one after another. All calls but losses() are collective.
class Steps {
 public:
  /// All must outlive this.
  Steps(backend::Executable& executable, const program::Program& program, const program::InputSource& inputs)
      : executable_(executable), program_(program), inputs_(inputs) {}

  /// Runs `count` more steps without a pause and returns how long each took.
  std::vector<double> run(int count);
  struct Profiled {
    std::vector<program::Interval> intervals;
    double loading_s = 0;  // that the host spent filling inputs
  };
  /// Runs one more step, which is not among those that losses() knows.
  Profiled run_profiled();
  /// Of all steps of run().
  std::vector<float> losses() const;
  /// How long the first step took; 0: none was run.
  double first_step_s() const { return first_step_s_; }
  std::int64_t done() const { return done_; }

  backend::Executable& executable() const { return executable_; }
  const program::Program& program() const { return program_; }
  const program::InputSource& inputs() const { return inputs_; }

 private:
  backend::Executable& executable_;
  const program::Program& program_;
  const program::InputSource& inputs_;
  std::int64_t done_ = 0;
  int run_ = 0;  // by run()
  double first_step_s_ = 0;
};

}  // namespace harness::worker
