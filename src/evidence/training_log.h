#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "evidence/answer.h"
#include "evidence/input.h"

namespace harness::evidence {

/// A progress line: the time of its iteration, or the mean of those since the line before.
struct Interval {
  std::int64_t iteration = 0;
  double seconds = 0;  // of one iteration; 0: the line says only samples or tokens per second
  double samples_per_s = 0, tokens_per_s_per_gpu = 0;  // 0: not said
  bool single = false;                                 // it is no mean
};

/// A job and its steps, from a training log.
struct TrainingLog {
  std::string framework;                      // "megatron-lm"; "": no line says it
  std::string gpu;                            // "H100 80GB HBM3"; "": not said
  std::map<std::string, std::int64_t> sizes;  // layers, hidden, …, ranks, tp, pp, cp, dp, micro_batch, global_batch
  std::map<std::string, std::string> words;   // activation, precision, sharding, recompute, overlap_grad_reduce, …
  std::map<std::string, std::string> arguments;  // Megatron-LM's dump of its arguments, all defaults resolved
  std::vector<Interval> intervals;               // those of the longest run without a restart or a new batch size
  std::int64_t restarts = 0, batch_changes = 0;  // where runs were cut
  bool neighbours_share = false;                 // each value is a mean over a sliding window
  bool by_timers = false;                        // each value is the sum of DeepSpeed's timers of a step
  bool whole_run = false;                        // only the whole run's time is known: `steps` in `run_seconds`
  std::int64_t steps = 0;
  double run_seconds = 0;
  double own_tflops = 0, own_mfu = 0;  // the log's last words on itself: TFLOP/s per GPU, a share; 0: none
  struct Failure {
    std::int64_t line = 0, count = 0;  // the first one's line
  };
  std::map<std::string, Failure> failures;  // by what happened: "CUDA out of memory"
  bool too_long = false;                    // there were more intervals than are kept

  std::int64_t size(const std::string& name) const;
};

/// The batch of a progress line of Megatron-LM; 0: it has none.
std::int64_t global_batch_in(std::string_view text);

/// Takes the lines of a training log of Megatron-LM, Megatron-Bridge, Megatron-DeepSpeed, GPT-NeoX, NeMo, torchtitan,
/// llm-foundry (composer), DeepSpeed, the Hugging Face Trainer, nanoGPT or MaxText among any others.
class TrainingLogReader {
 public:
  void line(const Line& line);
  TrainingLog finish();

 private:
  bool progress(std::string_view text);
  bool beside(std::string_view text);
  bool composer(std::string_view text);
  bool deepspeed(std::string_view text);
  bool trainer(std::string_view text);
  void bar(std::string_view text);
  bool description(std::string_view text);
  bool argument(std::string_view text);
  bool batch(std::string_view text);
  void mesh(std::string_view text);
  void failure(const Line& line, bool is_known);
  void end_run();
  void add(const char* framework, Interval interval, std::int64_t global_batch = 0);
  void end_block();
  void size(const char* name, std::optional<std::int64_t> value);

  TrainingLog log_;
  std::vector<Interval> run_;     // since the last restart
  std::vector<Interval> beside_;  // of lines that count where there are no others
  std::int64_t last_iteration_ = -1, last_batch_ = 0;
  bool bridge_seen_ = false;
  bool in_arguments_ = false;
  std::map<std::string, double> block_;  // composer's
  double last_tokens_ = 0, last_batches_ = 0;
  std::int64_t bar_step_ = -1, bar_total_ = 0, announced_steps_ = 0;
  double bar_seconds_ = 0;
};

/// How steady the steps of a log are. Seconds.
struct StepTimes {
  std::int64_t intervals = 0;  // values of the log, each a step or a mean over several
  std::int64_t skipped = 0;    // of these at the beginning: warm-up
  double seconds = 0;          // the median of the others; after a jump that of the values behind it
  double low = 0, high = 0;    // its 95 % interval; 0: too few values
  double spread = 0;           // 1.4826 MAD / median
  std::int64_t spikes = 0;     // values over 1.5 times the median
  double lost = 0;             // their excess as a share of the time of all values but warm-up
  std::int64_t period = 0;     // values between spikes at a fixed distance; 0: there is none

  struct Jump {
    std::size_t at = 0;  // the first value after it, counted from the log's first
    double before = 0, after = 0;
    double share() const { return after / before - 1; }
  };
  std::optional<Jump> jump;
  std::optional<double> drift;  // as a share, over the values that count
};

/// Warm-up: the first tenth, at least 1 and at most 10 values. Spikes are left out of everything else. Then, on the
/// values that remain, at least 2 % and at least three robust deviations (1.4826 MAD) or it is not reported:
/// a jump, the split with five values on both sides that maximises |ln(median right / median left)|; else a drift,
/// the slope of Theil (1950) and Sen (1968) over the log. The interval of the median rests on order statistics and
/// needs no distribution. Throws Error for no values.
StepTimes judge_steps(std::span<const double> seconds);

/// Step time, how steady it is, and what that is in tokens and FLOP/s. Of a log without steps: why the job stopped.
Answer answer_of(const TrainingLog& log, const Gaps& gaps);

}  // namespace harness::evidence
