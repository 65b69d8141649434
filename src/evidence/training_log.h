#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "evidence/answer.h"
#include "evidence/input.h"

namespace harness::evidence {

/// A progress line: the time of its iteration, or the mean since the previous line.
struct Interval {
  std::int64_t iteration = 0;
  double seconds = 0;  // per iteration; 0: the line has only samples or tokens per second
  double samples_per_s = 0, tokens_per_s_per_gpu = 0;  // 0: not logged
  bool single = false;                                 // not a mean
};

struct TrainingLog {
  std::string framework;                      // "megatron-lm"; "": not logged
  std::string gpu;                            // "H100 80GB HBM3"; "": not logged
  std::map<std::string, std::int64_t> sizes;  // layers, hidden, …, ranks, tp, pp, cp, dp, micro_batch, global_batch
  std::map<std::string, std::string> words;   // activation, precision, sharding, recompute, overlap_grad_reduce, …
  std::map<std::string, std::string> arguments;  // Megatron-LM's dump of its arguments with defaults resolved
  std::vector<Interval> intervals;               // longest run without a restart or a new batch size
  std::int64_t restarts = 0, batch_changes = 0;  // where runs were split
  bool neighbours_share = false;                 // values are means over a sliding window
  bool by_timers = false;                        // values are sums of DeepSpeed's timers of a step
  bool whole_run = false;                        // only the whole run's time is known: `steps` in `run_seconds`
  std::int64_t steps = 0;
  double run_seconds = 0;
  double own_tflops = 0, own_mfu = 0;  // last values the log reports: TFLOP/s per GPU, fraction; 0: none
  struct Failure {
    std::int64_t line = 0, count = 0;  // line of the first failure
  };
  std::map<std::string, Failure> failures;  // by kind: "CUDA out of memory"
  bool too_long = false;                    // the number of intervals exceeded the limit

  std::int64_t size(const std::string& name) const { return value_at(sizes, name, 0); }
};

/// Returns the global batch size in a Megatron-LM progress line; 0: none.
std::int64_t global_batch_in(std::string_view text);

/// Extracts training progress from mixed log lines of Megatron-LM, Megatron-Bridge, Megatron-DeepSpeed, GPT-NeoX, NeMo,
/// torchtitan, llm-foundry (composer), DeepSpeed, the Hugging Face Trainer, nanoGPT or MaxText.
class TrainingLogReader {
 public:
  void line(const Line& line);
  /// Takes what stands before NCCL's log on the same line. Only a step counts: other values may run into NCCL's host.
  void before_nccl(const Line& line);
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
  std::vector<Interval> beside_;  // from lines that count only if there are no others
  std::int64_t last_iteration_ = -1, last_batch_ = 0;
  bool bridge_seen_ = false;
  bool in_arguments_ = false;
  std::map<std::string, double> block_;  // values of composer's current block
  double last_tokens_ = 0, last_batches_ = 0;
  std::int64_t bar_step_ = -1, bar_total_ = 0, announced_steps_ = 0;
  double bar_seconds_ = 0, bar_clock_ = 0;  // where the current interval began; latest
  bool bar_open_ = false;                   // the bar is not full
  Interval bar_shown_;                      // as the bar itself says, if nothing better is logged
};

/// Stability of a log's step times, in seconds.
struct StepTimes {
  std::int64_t intervals = 0;  // logged values, each a step or a mean over several
  std::int64_t skipped = 0;    // leading warm-up values among them
  double seconds = 0;          // median of the others; after a jump, of the values behind it
  std::int64_t counted = 0;    // values behind interval and spread: without warm-up, spikes and what precedes a jump
  double low = 0, high = 0;    // 95 % interval of the median; 0: too few values
  double spread = 0;           // 1.4826 MAD / median
  std::int64_t spikes = 0;     // values over 1.5 times the median, without five and more at the end: a jump
  double lost = 0;             // excess of the spikes as a fraction of all time after warm-up
  std::int64_t period = 0;     // period of regular spikes, in values; 0: not periodic

  struct Jump {
    std::size_t at = 0;  // index of the first value after it, from the log's first
    double before = 0, after = 0;
    double share() const { return after / before - 1; }
  };
  std::optional<Jump> jump;
  std::optional<double> drift;  // relative change over the values that count
};

/// Warm-up is the first tenth, at most 10 values, and at least one of two or more. Spikes are excluded from interval,
/// spread, jump and drift. A jump is the split with five values on both sides that maximises |ln(median right / median
/// left)|, if it is at least 2 % and 3 * 1.4826 MAD of the residuals. Without a jump, a drift is the slope of Theil
/// (1950) and Sen (1968) over the log, if it is at least 2 % and 3 MAD. The interval of the median uses order
/// statistics and assumes no distribution. Throws Error for no values.
StepTimes judge_steps(std::span<const double> seconds);

/// Reports step time, its stability, tokens/s and FLOP/s. For a log without steps, reports why the job stopped.
Answer answer_of(const TrainingLog& log, const Gaps& gaps);

}  // namespace harness::evidence
