// The bubble of each schedule, measured. Every pass of a layer sleeps, so that passes take equally long and overlap
// between ranks whatever the number of cores; what they compute takes next to nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "local_job.h"
#include "support/soak.h"

namespace harness {
namespace {

using config::PipelineSchedule;

constexpr int stages = 4, micro_batches = 8, layers_of_stage = 2;

// A pipeline, and how long its fastest step so far has had nothing to do.
class Measured {
 public:
  Measured(PipelineSchedule schedule, double delay_s) {
    const int chunks = schedule == PipelineSchedule::interleaved ? 2 : 1;
    config::Settings s;
    s.pipeline_schedule = schedule;
    s.global_batch_size = micro_batches;
    job_ = std::make_unique<test::LocalJob>(config::Model{"m", stages * layers_of_stage, 16, 1, 32, 4}, s,
                                            test::layout_of(1, stages, 1), 1, test::KeptConnections{},
                                            test::Delay{"compute", delay_s});
    // (p - 1)(F + B + W) / v (docs/method.md), a delay for each layer of a pass and two for each of a backward pass.
    formula_s_ = 3 * (stages - 1) * delay_s * layers_of_stage / chunks;
    job_->run(1);
  }
  // A pass takes as long as it takes: what the first stage's passes take is not taken for its bubble.
  void step() {
    double busy_s = 0, step_s = 0;
    for (const program::Interval& x : job_->run_profiled()) {
      const program::Operation& op = job_->program(0).step.at(x.operation);
      if (!program::is_communication(op.action)) busy_s += x.end_s - x.start_s;
      step_s = std::max(step_s, x.end_s);
    }
    idle_s_ = std::min(idle_s_, step_s - busy_s);
  }
  double idle_s() const { return idle_s_; }
  double of_formula() const { return idle_s_ / formula_s_; }

 private:
  double formula_s_ = 0, idle_s_ = 1e9;
  std::unique_ptr<test::LocalJob> job_;
};

// Other processes can only lengthen a step, so steps are repeated until one was undisturbed enough. HARNESS_SOAK=1 asks
// for 5 % of the formula, which takes a machine that is not busy.
TEST(Bubble, OfEachScheduleIsWhatItsFormulaSays) {
  const bool strict = test::soaking();
  const double delay_s = strict ? 0.05 : 0.02;
  Measured usual(PipelineSchedule::one_forward_one_backward, delay_s), gpipe(PipelineSchedule::gpipe, delay_s),
      interleaved(PipelineSchedule::interleaved, delay_s);
  const auto as_expected = [&] {
    const bool ordered = interleaved.idle_s() < 0.8 * usual.idle_s() && interleaved.idle_s() < 0.8 * gpipe.idle_s();
    return ordered && (!strict || std::max({usual.of_formula(), gpipe.of_formula(), interleaved.of_formula()}) < 1.05);
  };
  constexpr int most_attempts = 20;
  for (int attempt = 0; attempt < most_attempts && !as_expected(); ++attempt) {
    for (Measured* measured : {&usual, &gpipe, &interleaved}) measured->step();
  }
  const std::string found = fmt::format("bubbles of their formulas: 1f1b {:.3f}, gpipe {:.3f}, interleaved {:.3f}",
                                        usual.of_formula(), gpipe.of_formula(), interleaved.of_formula());
  RecordProperty("bubbles", found);
  EXPECT_TRUE(as_expected()) << found;
  // Nothing sleeps for less than it is told to, so no bubble is smaller, but for what the first stage's passes take
  // more than those that it waits for.
  for (const Measured* measured : {&usual, &gpipe, &interleaved}) EXPECT_GE(measured->of_formula(), 0.9) << found;
}

}  // namespace
}  // namespace harness
