#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evidence/answer.h"
#include "evidence/lines.h"

namespace harness::evidence {

/// A progress line: the mean time of the iterations since the one before.
struct Interval {
  std::int64_t iteration = 0;
  double seconds = 0;  // of one iteration; 0: the line says only samples or tokens per second
  double samples_per_s = 0, tokens_per_s_per_gpu = 0;  // 0: not said
};

/// A job and its steps, from a training log.
struct TrainingLog {
  std::string framework;                      // "megatron-lm"; "": no progress line was found
  std::string gpu;                            // "H100 80GB HBM3"; "": not said
  std::map<std::string, std::int64_t> sizes;  // layers, hidden, …, ranks, tp, pp, cp, dp, micro_batch, global_batch
  std::map<std::string, std::string> words;   // activation, precision, sharding, recompute, overlap_grad_reduce, …
  std::map<std::string, std::string> arguments;  // Megatron-LM's dump of its arguments, all defaults resolved
  std::vector<Interval> intervals;               // those of the longest run without a restart or a new batch size
  std::int64_t restarts = 0, batch_changes = 0;  // where runs were cut
  bool neighbours_share = false;                 // each value is a mean over a sliding window
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

/// Takes the lines of a training log of Megatron-LM, Megatron-Bridge, Megatron-DeepSpeed, GPT-NeoX, NeMo, torchtitan,
/// llm-foundry (composer), DeepSpeed, the Hugging Face Trainer, nanoGPT or MaxText among any others.
class TrainingLogReader {
 public:
  void line(const Line& line);
  TrainingLog finish();

 private:
  bool progress(std::string_view text);
  bool megatron(std::string_view text);
  bool nemo(std::string_view text);
  bool torchtitan(std::string_view text);
  bool composer(std::string_view text);
  bool deepspeed(std::string_view text);
  bool trainer(std::string_view text);
  bool others(std::string_view text);
  void bar(std::string_view text);
  bool description(std::string_view text);
  bool argument(std::string_view text);
  void failure(const Line& line);
  void add(const char* framework, Interval interval, std::int64_t global_batch = 0);
  void end_block();
  void size(const char* name, std::optional<std::int64_t> value);

  TrainingLog log_;
  std::vector<Interval> run_;     // since the last restart
  std::vector<Interval> bridge_;  // of lines that Megatron-Bridge prints beside the others
  std::int64_t last_iteration_ = -1, last_batch_ = 0;
  bool bridge_seen_ = false;
  bool in_arguments_ = false;
  std::map<std::string, double> block_;  // composer's
  double last_tokens_ = 0, last_batches_ = 0;
  std::int64_t bar_step_ = -1, bar_total_ = 0;
  double bar_seconds_ = 0;
};

/// Step time, how steady it is, and what that is in tokens and FLOP/s.
Answer answer_of(const TrainingLog& log, const Gaps& gaps);

}  // namespace harness::evidence
