#include "evidence/training_log.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

// Progress lines: Megatron-LM megatron/training/training.py (and of Megatron-DeepSpeed, GPT-NeoX, Megatron-Bridge),
// NeMo lightning loggers, torchtitan components/metrics.py, composer loggers/console_logger.py, DeepSpeed
// utils/timer.py and runtime/pipe/engine.py, transformers trainer.py (4 and 5), nanoGPT train.py, MaxText
// metric_logger.py.

namespace harness::evidence {
namespace {

constexpr std::size_t most_intervals = 1u << 20;

/// A progress line with all values of its step. Each text lists labels that precede a value, separated by '|'.
struct Progress {
  const char* framework;
  Text marks;  // required parts separated by '&'; '!' marks a part that must be absent
  Text iteration, seconds;
  bool single = false;  // the time covers one iteration
  Text tflops = {}, batch = {}, mfu = {}, tokens_per_s_per_gpu = {}, samples_per_s = {};
};
constexpr Text elapsed = "elapsed time per iteration (ms):|elapsed time per iteration (s):",
               of_megatron = "(TFLOP/s/GPU):|TFLOPs:|approx flops per GPU:",
               batch_of_megatron = "global batch size:|gloabl batch size:";  // the second until 2021 and in forks
// Megatron-DeepSpeed, Primus
constexpr Text tokens_of_megatron =
    "tokens per gpu per second (tgs):|tokens per GPU (tokens/s/GPU):|tokens/s/GPU inst/harmonic mean:";
constexpr std::array<Progress, 11> progress_lines{{
    // "iteration       10/     400 | consumed samples: … | elapsed time per iteration (ms): 2669.6 | …"
    {"gpt-neox", "elapsed time per iteration (&approx flops per GPU:", "iteration ", elapsed, false, of_megatron,
     batch_of_megatron, "", "", "samples/sec:"},
    {"megatron-deepspeed", "elapsed time per iteration (&samples per second", "iteration ", elapsed, false, of_megatron,
     batch_of_megatron, "", tokens_of_megatron},
    // "iteration=       2/  317892 | … | elapsed_time_per_iteration_ms=16030.6 | …", of Argonne's fork
    {"megatron-deepspeed", "elapsed_time_per_iteration_ms=", "iteration=", "elapsed_time_per_iteration_ms=", false,
     "TFLOPs=", "global_batch_size=", "", "tokens_per_gpu_per_second_tgs="},
    {"megatron-lm", "elapsed time per iteration (", "iteration ", elapsed, false, of_megatron, batch_of_megatron, "",
     tokens_of_megatron},
    // "Training epoch 0, iteration 9/99 | … | global_batch_size: 128 | … | train_step_timing in s: 12.27 | …", where
    // iterations begin again with each epoch; a bar "… global_step=9.000, …, train_step_timing in s=12.30]"
    {"nemo 2", "train_step_timing in s:", "global_step:|iteration ", "train_step_timing in s:", true,
     "TFLOPS_per_GPU:", "global_batch_size:"},
    {"nemo 1", "train_step_timing in s=", "global_step=", "train_step_timing in s=", true, "TFLOPS_per_GPU:"},
    // "step: 10  loss: …  memory: …  tps: 6,250  tflops: 362.48  mfu: 36.65%"; `wps` until 2025
    {"torchtitan", "step:&loss:&tps: &!validate step:", "step:", "", false, "tflops:", "", "mfu:", "tps: "},
    {"torchtitan", "step:&loss:&wps: &!validate step:", "step:", "", false, "tflops:", "", "mfu:", "wps: "},
    // "steps: 10 loss: 2.1 iter time (s): 1.234 samples/sec: 415.1", of the pipeline engine
    {"deepspeed", "iter time (s):&steps:", "steps:", "iter time (s):", false, "", "", "", "", "samples/sec:"},
    // "iter 10: loss 4.1234, time 248.10ms, mfu 34.11%", at first without mfu
    {"nanogpt", "iter &: loss &, time ", "iter ", ", time ", true, "", "", "mfu "},
    // "completed step: 5, seconds: 4.123, TFLOP/s/device: 410.2, Tokens/s/device: 7990.1, …"
    {"maxtext", "completed step:", "completed step:", "seconds:", true, "TFLOP/s/device:", "", "", "Tokens/s/device:"},
}};

// Tries the labels separated by '|' in turn and returns what `read` finds after the first one with a value.
template <class Read>
auto behind(Text text, Text labels, Read read) {
  decltype(read(text, labels)) found;
  for (const Text label : split(labels, '|')) {
    if (!found && !label.empty()) found = read(text, label);
  }
  return found;
}

// Reads a duration: "(ms):" before or "ms" after the number means milliseconds, otherwise seconds.
std::optional<double> duration_after(Text text, Text label) {
  const auto value = number_after(text, label);
  Cursor c{text};
  c.after(label);
  c.skip_blanks();
  const bool milli = contains(label, "ms") || c.until(" ,|]").ends_with("ms");
  return value ? std::optional(*value * (milli ? 1e-3 : 1)) : std::nullopt;
}

// "1:02:03"; NaN for any other text.
double seconds_of_clock(Text text) {
  double seconds = 0;
  for (const Text part : split(text, ':')) seconds = 60 * seconds + as_number(part).value_or(std::nan(""));
  return seconds;
}

// Returns the batch of a run whose epochs may each end in a smaller one; nothing if several sizes fit.
std::optional<std::int64_t> batch_of(double samples, double steps, double epochs) {
  constexpr double rounding = 1e-3, most_samples = 1e15;
  const double mean = std::clamp(samples / steps, 0.0, most_samples), nearest = std::round(mean);
  if (std::abs(mean - nearest) <= rounding * mean) return std::llround(nearest);
  const double least = std::ceil(mean), full_steps = steps - epochs;
  if (full_steps <= 0 || std::floor(samples / full_steps) != least) return std::nullopt;
  return std::llround(least);
}

}  // namespace

std::int64_t global_batch_in(std::string_view text) {
  return behind(text, batch_of_megatron, integer_after).value_or(0);
}

void TrainingLogReader::size(const char* name, std::optional<std::int64_t> value) {
  if (value && *value > 0) log_.sizes[name] = *value;
}

// A lower iteration is a restart; a new batch size (ramp-up) changes the steps. Both begin a run; the longest counts.
void TrainingLogReader::add(const char* framework, Interval interval, std::int64_t global_batch) {
  constexpr double longest_s = 1e7;
  for (double* rate : {&interval.samples_per_s, &interval.tokens_per_s_per_gpu}) *rate = std::max(0.0, *rate);
  const bool rated = interval.seconds == 0 && interval.samples_per_s + interval.tokens_per_s_per_gpu > 0;
  if (!rated && !(interval.seconds > 0 && interval.seconds <= longest_s)) return;
  const bool of_engine = std::string_view(framework) == "deepspeed";  // GPT-NeoX and others print it beside theirs
  if (log_.framework.empty() || (interval.seconds > 0 && !of_engine)) log_.framework = framework;
  const bool restart = interval.iteration < last_iteration_;
  const bool repeated = interval.iteration == last_iteration_;  // several ranks, or a redrawn bar
  if (repeated && !run_.empty()) {
    if (global_batch > 0 && run_.size() >= log_.intervals.size()) size("global_batch", global_batch);
    if (run_.back().seconds > 0 || interval.seconds == 0) return;
    run_.back().seconds = interval.seconds;
    run_.back().single = interval.single;
    return;
  }
  const bool other_batch = global_batch > 0 && last_batch_ > 0 && global_batch != last_batch_;
  if (restart || other_batch) {
    log_.restarts += restart ? 1 : 0;
    log_.batch_changes += other_batch ? 1 : 0;
    end_run();
  }
  last_iteration_ = interval.iteration;
  if (global_batch > 0) last_batch_ = global_batch;
  if (run_.size() < most_intervals) {
    run_.push_back(interval);
  } else {
    log_.too_long = true;
  }
  if (global_batch > 0 && run_.size() >= log_.intervals.size()) size("global_batch", global_batch);
}

void TrainingLogReader::end_run() {
  if (run_.size() >= log_.intervals.size()) log_.intervals = std::move(run_);
  run_.clear();
}

void TrainingLogReader::line(const Line& line) {
  const std::string_view text = line.text;
  if (text.empty()) return;
  if (in_arguments_ && argument(text)) return;
  failure(line, progress(text) || description(text) || batch(text));
}

void TrainingLogReader::before_nccl(const Line& line) {
  if (progress(line.text)) failure(line, true);
}

bool TrainingLogReader::progress(std::string_view text) {
  if (beside(text)) return true;
  const auto row = std::ranges::find_if(progress_lines, [&](const Progress& p) { return has_all(text, p.marks); });
  if (row == progress_lines.end()) return composer(text) || deepspeed(text) || trainer(text);
  const auto iteration = behind(text, row->iteration, integer_after);
  const auto seconds = behind(text, row->seconds, duration_after);
  const auto tokens = behind(text, row->tokens_per_s_per_gpu, number_after);
  if (const auto own = behind(text, row->tflops, number_after)) log_.own_tflops = *own;
  if (const auto mfu = behind(text, row->mfu, number_after); mfu && *mfu > 0) log_.own_mfu = *mfu / 100;
  if (!iteration || !(seconds || tokens)) return true;
  const double samples = behind(text, row->samples_per_s, number_after).value_or(0),
               of_step = samples * seconds.value_or(0);
  constexpr double last_digit = 0.0005;  // seconds
  const bool precise = contains(row->seconds, "ms") || samples * last_digit < 0.5;
  if (of_step > 0 && precise) size("global_batch", std::llround(std::min(of_step, 1e12)));
  add(row->framework, {*iteration, seconds.value_or(0), samples, tokens.value_or(0), row->single},
      behind(text, row->batch, integer_after).value_or(0));
  return true;
}

// Lines that frameworks print in addition to their own, used only if no others have times. DeepSpeed, per step: "time
// (ms) | fwd: 40.8 | bwd: 81.2 | bwd_inner: … | step: 5.3". Megatron-Bridge: "Step Time : 9.34s GPU utilization:
// 722.7MODEL_TFLOP/s/GPU", in 2025 without "MODEL_".
bool TrainingLogReader::beside(std::string_view text) {
  if (contains(text, "time (ms) | ")) {
    const auto forward = behind(text, " fwd: | forward: ", number_after);  // whole words until 2023
    const auto backward = behind(text, " bwd: | backward: ", number_after), step = number_after(text, " step: ");
    if (!forward || !backward || !step) return false;
    log_.by_timers = true;
    if (beside_.size() < most_intervals)
      beside_.push_back({std::ssize(beside_), (*forward + *backward + *step) * 1e-3});
    return true;
  }
  if (!contains(text, "Step Time : ") || !contains(text, "TFLOP/s/GPU")) return false;
  bridge_seen_ = true;
  log_.own_tflops = number_after(text, "GPU utilization:").value_or(0);
  const auto seconds = number_after(text, "Step Time :");
  if (seconds && *seconds > 0 && beside_.size() < most_intervals) beside_.push_back({std::ssize(beside_), *seconds});
  return true;
}

// "[batch=10/63900]:", then one line per value: "Train throughput/tokens_per_sec: 188845.4607".
bool TrainingLogReader::composer(std::string_view text) {
  if (text.starts_with("[batch=") && text.ends_with(":")) {
    end_block();
    if (const auto batch = integer_after(text, "[batch=")) block_["batch"] = static_cast<double>(*batch);
    return true;
  }
  if (block_.empty()) return false;
  const std::size_t at = text.find("Train ");
  const std::size_t colon = text.rfind(": ");
  if (at == std::string_view::npos || colon == std::string_view::npos || colon < at) return false;
  constexpr std::size_t most = 256;
  const std::string name(trim(text.substr(at + 6, colon - at - 6)));
  const auto value = as_number(text.substr(colon + 2));
  if (value && block_.size() < most) block_[name] = *value;
  return true;
}

void TrainingLogReader::end_block() {
  const auto value = [&](const char* name) { return value_at(block_, name, 0); };
  const double tokens_s = value("throughput/tokens_per_sec"), samples_s = value("throughput/samples_per_sec");
  const double device_s = value("throughput/device/tokens_per_sec"), batches_s = value("throughput/batches_per_sec");
  const double tokens = value("time/token"), batches = value("time/batch");
  const auto whole = [](double x) -> std::optional<std::int64_t> {
    return x > 0.5 && x < 1e15 ? std::optional<std::int64_t>(std::llround(x)) : std::nullopt;
  };
  if (batches_s > 0 || tokens_s > 0) {
    if (device_s > 0) size("ranks", whole(tokens_s / device_s));
    const auto sequence = samples_s > 0 ? whole(tokens_s / samples_s) : std::nullopt;
    size("sequence", sequence);
    size("micro_batch", whole(value("trainer/device_train_microbatch_size")));
    double seconds = batches_s > 0 ? 1 / batches_s : 0;
    const double per_batch = batches > last_batches_ ? (tokens - last_tokens_) / (batches - last_batches_) : 0;
    if (last_batches_ > 0 && per_batch > 0 && tokens_s > 0) {
      seconds = per_batch / tokens_s;  // more precise than batches per second
      if (sequence) size("global_batch", whole(per_batch / static_cast<double>(*sequence)));
    }
    if (const double mfu = value("throughput/device/mfu"); mfu > 0) log_.own_mfu = mfu;
    log_.neighbours_share = true;
    add("llm-foundry / composer", {std::llround(std::min(value("batch"), 1e15)), seconds, samples_s, device_s});
  }
  last_tokens_ = tokens;
  last_batches_ = batches;
  block_.clear();
}

// "… global_step=10, RunningAvgSamplesPerSec=96.0, CurrSamplesPerSec=96.7, …", before 0.8 "… 0/10, RunningAvg…", before
// 0.7 the mean alone: "… 0/10, SamplesPerSec=96.0, …"
bool TrainingLogReader::deepspeed(std::string_view text) {
  const auto last = number_after(text, "CurrSamplesPerSec="),
             samples = last ? last : number_after(text, " SamplesPerSec=");
  auto step = integer_after(text, "global_step=");
  if (!step) {
    const Text before = text.substr(0, text.find("SamplesPerSec="));
    step = integer_after(before.substr(std::min(before.rfind('/'), before.size())), "/");
  }
  if (!step || !samples) return false;
  log_.neighbours_share = !last;
  add("deepspeed", {*step, 0, *samples, 0, true});
  return true;
}

// "{'train_runtime': 912.4407, 'train_samples_per_second': 35.07, 'train_steps_per_second': 0.548, …}"; since
// transformers 5 the numbers are quoted. Progress bars have whole seconds, so they count only 50 s apart.
bool TrainingLogReader::trainer(std::string_view text) {
  if (has_any(text, "s/it]|it/s]|s/it, |it/s, ")) {  // also with a loss
    bar(text);
    return false;  // an error often follows without a line feed
  }
  const bool of_step = has_all(text, "'loss': &'learning_rate': ");
  const auto runtime = number_after(text, "'train_runtime':"),
             steps_s = number_after(text, "'train_steps_per_second':");
  if (!of_step && !(runtime && steps_s)) return false;
  log_.framework = has_any(text, "'train_runtime': '|'loss': '") ? "hugging face trainer 5" : "hugging face trainer 4";
  if (of_step || !(*runtime > 0) || !(*steps_s > 0)) return true;
  log_.run_seconds = *runtime;
  log_.whole_run = true;
  // The rates have three decimals, so small ones are too imprecise.
  constexpr double precise = 0.05;
  log_.steps = announced_steps_ > 0 ? announced_steps_ : bar_total_;
  constexpr double last_digit = 0.0005, same = 0.01;
  const double counted = std::min(log_.run_seconds * *steps_s, 1e15), off_by = log_.run_seconds * last_digit;
  if (std::abs(static_cast<double>(log_.steps) - counted) > off_by + same * counted + 1)
    log_.steps = 0;  // of another bar
  if (log_.steps == 0 && (*steps_s >= precise || off_by < 0.5)) log_.steps = std::llround(counted);
  const double samples = number_after(text, "'train_samples_per_second':").value_or(0) * log_.run_seconds;
  if (announced_steps_ == 0 && log_.steps > 0)
    size("global_batch",
         batch_of(samples, static_cast<double>(log_.steps), number_after(text, "'epoch':").value_or(1)));
  return true;
}

// "10%|█   | 50/500 [01:31<13:40,  1.82s/it]". Bars with a name ("Map: 10%|…") do not count steps, except "Epoch 0",
// "Training", "Steps". Each rank draws its own: a bar that falls back is another one.
void TrainingLogReader::bar(std::string_view text) {
  const std::size_t share = text.find("%|");  // the next line often follows the bar without a line feed
  const std::size_t bracket = share == std::string_view::npos ? text.rfind(" [") : text.find(" [", share);
  if (bracket == std::string_view::npos) return;
  const std::string name = lower(text.substr(0, std::min(share, bracket)));
  const bool named = has_any(name, "epoch|train|step|iter");
  if (name.find_first_of("abcdefghijklmnopqrstuvwxyz") != std::string::npos && !named) return;
  const std::size_t bars = text.substr(0, bracket).rfind("| ");
  if (bars == std::string_view::npos) return;
  Cursor c{trim(text.substr(bars + 2, bracket - bars - 2))};
  std::int64_t step = 0, total = 0;
  if (!c.integer(step) || !c.literal("/") || !c.integer(total) || step < 0) return;
  Cursor clock{text.substr(bracket + 2)};
  const double seconds = seconds_of_clock(clock.until("<"));
  if (!(seconds >= 0) || clock.rest.empty()) return;
  const bool other = total != bar_total_;
  // An evaluation runs while the training's bar is not full, and that bar's clock goes on.
  if (other && bar_open_ && seconds < bar_clock_) return;
  bar_clock_ = other ? seconds : std::max(bar_clock_, seconds);
  bar_total_ = total;
  bar_open_ = step < total;
  constexpr double apart = 50;
  clock.after(", ");
  clock.skip_blanks();
  const Text shown = clock.word();  // "1.82s/it]"
  const double rate = as_number(replaced(shown.substr(0, shown.find_first_of("si")), {{',', "."}})).value_or(0);
  if (rate > 0 && (named || (bar_open_ && seconds >= apart)))
    bar_shown_ = {step, contains(shown, "s/it") ? rate : 1 / rate};
  if (other || bar_step_ < 0 || step < bar_step_ || seconds < bar_seconds_) {
    if (step < last_iteration_) {
      end_run();
      last_iteration_ = -1;
    }
    bar_step_ = step;
    bar_seconds_ = seconds;
  } else if (step > bar_step_ && seconds - bar_seconds_ >= apart) {
    const double each = (seconds - bar_seconds_) / static_cast<double>(step - bar_step_);
    add(log_.framework.starts_with("hugging") ? log_.framework.c_str() : "progress bar", {step, each, 0, 0});
    bar_step_ = step;
    bar_seconds_ = seconds;
  }
}

TrainingLog TrainingLogReader::finish() {
  end_block();
  if (const auto world = log_.arguments.find("world_size"); world != log_.arguments.end())
    size("ranks", number_in<std::int64_t>(world->second));
  end_run();
  if (log_.intervals.empty() && beside_.empty() && !log_.whole_run && bar_shown_.seconds > 0) {
    add(log_.framework.empty() ? "progress bar" : log_.framework.c_str(), bar_shown_);
    end_run();
  }
  const auto is_timed = [](const Interval& interval) { return interval.seconds > 0; };
  const bool timed = std::ranges::any_of(log_.intervals, is_timed);
  // DeepSpeed's own rate can be that of a step's last micro-batch alone: it counts only if there is nothing else.
  if (timed) std::erase_if(log_.intervals, [&](const Interval& interval) { return !is_timed(interval); });
  const bool counts_beside = !timed && !beside_.empty();
  log_.by_timers = log_.by_timers && counts_beside && !bridge_seen_;
  if (counts_beside) log_.intervals = std::move(beside_);
  if (log_.by_timers && log_.framework.empty()) log_.framework = "deepspeed";
  if (bridge_seen_) log_.framework = "megatron-bridge";
  if (log_.framework.empty() && !log_.arguments.empty()) log_.framework = "megatron-lm";
  return std::move(log_);
}

}  // namespace harness::evidence
