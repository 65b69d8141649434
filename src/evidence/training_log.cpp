#include "evidence/training_log.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

// Progress lines: Megatron-LM megatron/training/training.py (and of Megatron-DeepSpeed, GPT-NeoX, Megatron-Bridge),
// NeMo lightning loggers, torchtitan components/metrics.py, composer loggers/console_logger.py, DeepSpeed
// utils/timer.py and runtime/pipe/engine.py, transformers trainer.py (4 and 5), nanoGPT train.py, MaxText
// metric_logger.py.

namespace harness::evidence {
namespace {

constexpr std::size_t most_intervals = 1u << 20;

}  // namespace

// Megatron-LM of 2021 and its forks write "gloabl".
std::int64_t global_batch_in(std::string_view text) {
  const auto named = integer_after(text, "global batch size:");
  return named ? *named : integer_after(text, "gloabl batch size:").value_or(0);
}

std::int64_t TrainingLog::size(const std::string& name) const {
  const auto found = sizes.find(name);
  return found == sizes.end() ? 0 : found->second;
}

void TrainingLogReader::size(const char* name, std::optional<std::int64_t> value) {
  if (value && *value > 0) log_.sizes[name] = *value;
}

// An iteration that falls back is a restart; a new batch size (ramp-up) makes other steps. The longest run counts.
void TrainingLogReader::add(const char* framework, Interval interval, std::int64_t global_batch) {
  constexpr double longest_s = 1e7;
  for (double* rate : {&interval.samples_per_s, &interval.tokens_per_s_per_gpu})
    *rate = std::isfinite(*rate) ? std::max(0.0, *rate) : 0;
  const bool timed = interval.seconds > 0 && interval.seconds <= longest_s;
  if (!timed && (interval.seconds != 0 || interval.samples_per_s + interval.tokens_per_s_per_gpu == 0)) {
    ++log_.without_time;
    if (log_.framework.empty()) log_.framework = framework;
    return;
  }
  const bool of_engine = std::string_view(framework) == "deepspeed";  // which GPT-NeoX and others print beside theirs
  if (log_.framework.empty() || (interval.seconds > 0 && !of_engine)) log_.framework = framework;
  const bool restart = interval.iteration < last_iteration_;
  const bool repeated = interval.iteration == last_iteration_;  // several ranks or a bar that is drawn again
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

bool TrainingLogReader::progress(std::string_view text) {
  return megatron(text) || nemo(text) || torchtitan(text) || composer(text) || deepspeed(text) || trainer(text) ||
         others(text);
}

// "iteration       10/     400 | consumed samples: … | elapsed time per iteration (ms): 2669.6 | …". Bridge prints
// "Step Time : 9.34s GPU utilization: 722.7MODEL_TFLOP/s/GPU" of the same interval beside it, in 2025 without "MODEL_".
bool TrainingLogReader::megatron(std::string_view text) {
  if (contains(text, "Step Time : ") && contains(text, "TFLOP/s/GPU")) {
    bridge_seen_ = true;
    log_.own_tflops = number_after(text, "GPU utilization:").value_or(0);
    const auto seconds = measurement_after(text, "Step Time :");
    log_.without_time += seconds && !(*seconds > 0) ? 1 : 0;
    if (seconds && *seconds > 0 && bridge_.size() < most_intervals)
      bridge_.push_back({static_cast<std::int64_t>(bridge_.size()), *seconds, 0, 0});
    return true;
  }
  const std::size_t at = text.find("elapsed time per iteration (");
  if (at == std::string_view::npos) return false;
  const auto iteration = integer_after(text, "iteration ");
  const auto value = measurement_after(text.substr(at), "):");
  if (!iteration || !value) return true;
  const bool milliseconds = text.substr(at).starts_with("elapsed time per iteration (ms)");
  const double seconds = *value * (milliseconds ? 1e-3 : 1);
  for (const char* label : {"(TFLOP/s/GPU):", "TFLOPs:", "approx flops per GPU:"}) {
    if (const auto own = number_after(text, label)) log_.own_tflops = *own;
  }
  const char* framework = contains(text, "samples per second") ? "megatron-deepspeed" : "megatron-lm";
  const std::int64_t global_batch = global_batch_in(text);
  if (contains(text, "approx flops per GPU:")) {
    framework = "gpt-neox";
    const double samples = number_after(text, "samples/sec:").value_or(0) * seconds;
    if (samples > 0.5 && samples < 1e12) size("global_batch", std::llround(samples));
  }
  add(framework, {*iteration, seconds, 0, 0}, global_batch);
  return true;
}

// NeMo 2: "Training epoch 0, iteration 9/99 | … | global_batch_size: 128 | … | train_step_timing in s: 12.27 | …"; NeMo
// 1 draws a bar: "… global_step=9.000, …, train_step_timing in s=12.30]".
bool TrainingLogReader::nemo(std::string_view text) {
  const std::size_t at = text.find("train_step_timing in s");
  if (at == std::string_view::npos) return false;
  const bool second = text.substr(at).starts_with("train_step_timing in s:");
  const auto value = measurement_after(text.substr(at), second ? "in s:" : "in s=");
  auto iteration = integer_after(text, second ? "global_step:" : "global_step=");
  if (!iteration && second) iteration = integer_after(text, "iteration ");  // it begins again with each epoch
  if (const auto own = number_after(text, "TFLOPS_per_GPU:")) log_.own_tflops = *own;
  if (value && iteration)
    add(second ? "nemo 2" : "nemo 1", {*iteration, *value, 0, 0, true},
        integer_after(text, "global_batch_size:").value_or(0));
  return true;
}

// "step: 10  loss: …  memory: …  tps: 6,250  tflops: 362.48  mfu: 36.65%"; `wps` until 2025.
bool TrainingLogReader::torchtitan(std::string_view text) {
  const std::size_t step = text.find("step:");
  if (step == std::string_view::npos || !contains(text, "loss:")) return false;
  if (text.substr(0, step).ends_with("validate ")) return false;
  auto tokens = measurement_after(text, "tps: ");
  if (!tokens) tokens = measurement_after(text, "wps: ");
  const auto iteration = integer_after(text.substr(step), "step:");
  if (!tokens || !iteration) return false;
  if (const auto mfu = number_after(text, "mfu:")) log_.own_mfu = *mfu / 100;
  if (const auto own = number_after(text, "tflops:")) log_.own_tflops = *own;
  add("torchtitan", {*iteration, 0, 0, *tokens});
  return true;
}

// "[batch=10/63900]:", then a line for each number: "Train throughput/tokens_per_sec: 188845.4607".
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
  const auto value =
      name.starts_with("throughput/") ? measurement_after(text.substr(colon), ": ") : as_number(text.substr(colon + 2));
  if (value && block_.size() < most) block_[name] = *value;
  return true;
}

void TrainingLogReader::end_block() {
  const auto value = [&](const char* name) {
    const auto found = block_.find(name);
    return found == block_.end() ? 0.0 : found->second;
  };
  const double tokens_s = value("throughput/tokens_per_sec"), samples_s = value("throughput/samples_per_sec");
  const double device_s = value("throughput/device/tokens_per_sec"), batches_s = value("throughput/batches_per_sec");
  const double tokens = value("time/token"), batches = value("time/batch");
  const auto whole = [](double x) -> std::optional<std::int64_t> {
    return x > 0.5 && x < 1e15 ? std::optional<std::int64_t>(std::llround(x)) : std::nullopt;
  };
  if (std::isnan(batches_s) && !(tokens_s > 0)) {
    add("llm-foundry / composer", {0, batches_s, 0, 0});
  } else if (batches_s > 0 || tokens_s > 0) {
    if (device_s > 0) size("ranks", whole(tokens_s / device_s));
    const auto sequence = samples_s > 0 ? whole(tokens_s / samples_s) : std::nullopt;
    size("sequence", sequence);
    size("micro_batch", whole(value("trainer/device_train_microbatch_size")));
    double seconds = batches_s > 0 ? 1 / batches_s : 0;
    const double per_batch = batches > last_batches_ ? (tokens - last_tokens_) / (batches - last_batches_) : 0;
    if (last_batches_ > 0 && per_batch > 0 && tokens_s > 0) {
      seconds = per_batch / tokens_s;  // more digits than batches per second has
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
// 0.5 "… 0/10, SamplesPerSec=96.0, …", a mean since the start; the pipeline engine: "steps: 10 loss: 2.1 iter time (s):
// 1.234 samples/sec: 415.1".
bool TrainingLogReader::deepspeed(std::string_view text) {
  if (contains(text, "SamplesPerSec=")) {
    auto samples = measurement_after(text, "CurrSamplesPerSec=");
    const bool single = samples.has_value();
    if (!single) {
      samples = measurement_after(text, ", SamplesPerSec=");
      log_.neighbours_share = log_.neighbours_share || samples.has_value();
    }
    auto step = integer_after(text, "global_step=");
    if (!step) {
      Cursor c{text.substr(0, std::min(text.find(", RunningAvgSamplesPerSec="), text.find(", SamplesPerSec=")))};
      c.rest.remove_prefix(std::min(c.rest.rfind('/'), c.rest.size()));
      step = integer_after(c.rest, "/");
    }
    if (step && samples) add("deepspeed", {*step, 0, *samples, 0, single});
    return true;
  }
  const auto seconds = measurement_after(text, "iter time (s):");
  const auto step = integer_after(text, "steps:");
  if (!seconds || !step) return false;
  const double samples = number_after(text, "samples/sec:").value_or(0);
  constexpr double last_digit = 0.0005;  // of the seconds
  if (samples * *seconds > 0 && samples * last_digit < 0.5)
    size("global_batch", std::llround(std::min(samples * *seconds, 1e12)));
  add("deepspeed", {*step, *seconds, samples, 0});
  return true;
}

// "{'train_runtime': 912.4407, 'train_samples_per_second': 35.07, 'train_steps_per_second': 0.548, …}"; since
// transformers 5 the numbers are quoted. Bars are seconds: they count where they are 50 s apart.
bool TrainingLogReader::trainer(std::string_view text) {
  if (contains(text, "s/it]") || contains(text, "it/s]") || contains(text, "s/it, ") ||
      contains(text, "it/s, ")) {  // also with a loss
    bar(text);
    return true;
  }
  const bool quoted = contains(text, "'train_runtime': '") || contains(text, "'loss': '");
  if (contains(text, "'loss': ") && contains(text, "'learning_rate': ")) {
    log_.framework = quoted ? "hugging face trainer 5" : "hugging face trainer 4";
    return true;
  }
  const auto runtime = measurement_after(text, "'train_runtime': ");
  const auto steps_s = measurement_after(text, "'train_steps_per_second': ");
  if (!runtime || !steps_s) return false;
  log_.framework = quoted ? "hugging face trainer 5" : "hugging face trainer 4";
  if (!(*runtime > 0) || !(*steps_s > 0)) {
    ++log_.without_time;
    return true;
  }
  log_.whole_run = true;
  log_.run_seconds = *runtime;
  // The rates have three decimals: what is small is not known well enough.
  constexpr double precise = 0.05;
  log_.steps = announced_steps_ > 0 ? announced_steps_ : bar_total_;
  constexpr double last_digit = 0.0005;
  if (log_.steps == 0 && (*steps_s >= precise || *runtime * last_digit < 0.5))
    log_.steps = std::llround(std::min(*runtime * *steps_s, 1e15));
  const auto samples_s = number_after(text, "'train_samples_per_second': ");
  if (samples_s && announced_steps_ == 0 && *steps_s >= precise)
    size("global_batch", std::llround(std::clamp(*samples_s / *steps_s, 0.0, 1e15)));
  return true;
}

// "10%|█   | 50/500 [01:31<13:40,  1.82s/it]". Bars with a name ("Map: 10%|…") count what is no step, but for "Epoch
// 0", "Training", "Steps". Ranks draw their own: a bar that falls back is another one.
void TrainingLogReader::bar(std::string_view text) {
  const std::size_t bracket = text.rfind(" [");
  if (bracket == std::string_view::npos) return;
  const std::string name = lower(text.substr(0, std::min(text.find("%|"), bracket)));
  if (name.find_first_of("abcdefghijklmnopqrstuvwxyz") != std::string::npos && !contains(name, "epoch") &&
      !contains(name, "train") && !contains(name, "step") && !contains(name, "iter"))
    return;
  const std::size_t bars = text.substr(0, bracket).rfind("| ");
  if (bars == std::string_view::npos) return;
  Cursor c{trim(text.substr(bars + 2, bracket - bars - 2))};
  std::int64_t step = 0, total = 0;
  if (!c.integer(step) || !c.literal("/") || !c.integer(total) || step < 0) return;
  Cursor clock{text.substr(bracket + 2)};
  double seconds = 0;
  for (std::int64_t part = 0; clock.integer(part) && part >= 0;) {
    seconds = 60 * seconds + static_cast<double>(part);
    if (!clock.literal(":")) break;
  }
  if (!clock.rest.starts_with('<')) return;
  bar_total_ = total;
  constexpr double apart = 50;
  if (bar_step_ < 0 || step < bar_step_ || seconds < bar_seconds_) {
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

// nanoGPT: "iter 10: loss 4.1234, time 248.10ms, mfu 34.11%", at first without mfu. Nanotron: "iteration: 120 / 500 |
// … | elapsed_time_per_iteration_ms: 11.5K | …". MaxText: "completed step: 5, seconds: 4.123,
// TFLOP/s/device: 410.2, Tokens/s/device: 7990.1, …".
bool TrainingLogReader::others(std::string_view text) {
  if (const std::size_t at = text.find("elapsed_time_per_iteration_ms:"); at != std::string_view::npos) {
    const auto iteration = integer_after(text, "iteration: ");
    const std::string_view words = text.substr(at, text.find(" |", at) - at);
    const auto milliseconds = measurement_after(words, "_ms:");
    if (const auto own = number_after(text, "model_tflops_per_gpu:")) log_.own_tflops = *own;
    if (iteration && milliseconds)
      add("nanotron", {*iteration, *milliseconds * (words.ends_with('K') ? 1 : 1e-3), 0, 0, true},
          integer_after(text, "global_batch_size:").value_or(0));
    return true;
  }
  if (text.starts_with("iter ") && contains(text, ": loss ") && contains(text, ", time ")) {
    const auto iteration = integer_after(text, "iter ");
    const auto milliseconds = measurement_after(text, "time ");
    if (const auto mfu = number_after(text, "mfu "); mfu && *mfu > 0) log_.own_mfu = *mfu / 100;
    if (iteration && milliseconds) add("nanogpt", {*iteration, *milliseconds * 1e-3, 0, 0, true});
    return true;
  }
  if (!contains(text, "completed step:")) return false;
  const auto iteration = integer_after(text, "completed step:");
  const auto seconds = measurement_after(text, "seconds:");
  if (const auto own = number_after(text, "TFLOP/s/device:")) log_.own_tflops = *own;
  if (iteration && seconds)
    add("maxtext", {*iteration, *seconds, 0, number_after(text, "Tokens/s/device:").value_or(0), true});
  return true;
}

TrainingLog TrainingLogReader::finish() {
  end_block();
  if (const auto world = log_.arguments.find("world_size"); world != log_.arguments.end())
    size("ranks", number_in<std::int64_t>(world->second));
  end_run();
  if (log_.intervals.empty() && !bridge_.empty()) log_.intervals = std::move(bridge_);
  if (bridge_seen_) log_.framework = "megatron-bridge";
  if (log_.framework.empty() && !log_.arguments.empty()) log_.framework = "megatron-lm";
  if (log_.framework.empty() && !log_.timeouts.empty()) log_.framework = "pytorch";
  return std::move(log_);
}

}  // namespace harness::evidence
