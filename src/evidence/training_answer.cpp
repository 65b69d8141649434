#include <algorithm>
#include <cmath>

#include "analysis/published.h"
#include "base/median.h"
#include "base/text.h"
#include "base/units.h"
#include "evidence/training_job.h"
#include "evidence/training_log.h"

namespace harness::evidence {
namespace {

// Returns nothing if the log lacks the model's sizes.
std::optional<config::Model> model_of(const TrainingLog& log) {
  const std::string activation = value_at(log.words, "activation", "");
  const bool dense = value_at(log.arguments, "num_experts", "None") == "None";
  if (log.size("sequence") == 0 || activation.empty() || !dense) return std::nullopt;
  config::Model model;
  config::each_key(model, [&](const config::ModelKey& key, auto& value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::int64_t>) value = log.size(key.name);
  });
  if (activation == "swiglu") model.activation = config::Activation::swiglu;
  return model;
}

std::string grouped(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

// Seconds per interval; if the log has only rates and the batch is unknown, their inverse.
struct Times {
  std::vector<double> values;
  bool seconds = true;
};

Times times_of(const TrainingLog& log, std::int64_t global_batch) {
  Times out;
  const double tokens = static_cast<double>(log.size("sequence")) * static_cast<double>(global_batch) /
                        std::max<double>(1, static_cast<double>(log.size("ranks")));
  const bool by_tokens = log.size("ranks") > 0 && tokens > 0;
  for (const Interval& interval : log.intervals) {
    double value = interval.seconds;
    if (value <= 0 && interval.tokens_per_s_per_gpu > 0) {
      out.seconds = by_tokens;
      value = (by_tokens ? tokens : 1) / interval.tokens_per_s_per_gpu;
    } else if (value <= 0 && interval.samples_per_s > 0) {
      out.seconds = global_batch > 0;
      value = (global_batch > 0 ? static_cast<double>(global_batch) : 1) / interval.samples_per_s;
    }
    if (value > 0) out.values.push_back(value);
  }
  return out;
}

constexpr std::int64_t few_values = 5;

void add_job(const TrainingLog& log, std::int64_t global_batch, std::int64_t ranks, Answer& out) {
  out.fact("framework", log.framework.empty() ? "unknown" : log.framework);
  for (const char* key :
       {"layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "sequence", "tp", "pp", "cp", "dp", "micro_batch"}) {
    if (log.size(key) > 0) out.fact(key, log.size(key));
  }
  if (ranks > 0) out.fact("ranks", ranks);
  if (global_batch > 0) out.fact("global_batch", global_batch);
  for (const auto& [key, value] : log.words)
    out.fact(key, value == "true" || value == "false" ? Value(value == "true") : Value(value));
  out.fact("gpu", log.gpu.empty() ? "unknown" : log.gpu);
  std::vector<std::string> text;
  if (ranks > 0) text.push_back(fmt::format("{} ranks", ranks));
  for (const auto& [name, key] : {std::pair("TP", "tp"), {"PP", "pp"}, {"CP", "cp"}, {"DP", "dp"}}) {
    if (log.size(key) > 0) text.push_back(fmt::format("{} {}", name, log.size(key)));
  }
  if (global_batch > 0) text.push_back(plural(global_batch, "sequence") + " a step");
  if (log.size("sequence") > 0) text.push_back(fmt::format("of {}", log.size("sequence")));
  if (!text.empty()) out.tell("job", join(text, "  "));
}

// Notes how the figures were obtained, for comparisons.
void add_how_to_read(const TrainingLog& log, const StepTimes& steps, double distance, Answer& out) {
  const auto note = [&](bool holds, std::string text) {
    if (holds) out.notes.push_back(std::move(text));
  };
  const bool single = !log.intervals.empty() && log.intervals.front().single;
  note(distance > 1, fmt::format("each value is {} of {:.0f}{}", single ? "one iteration" : "the mean", distance,
                                 single ? "" : " iterations"));
  note(steps.counted < few_values, fmt::format("{}, too few to say that it is steady{}", plural(steps.counted, "value"),
                                               steps.intervals == 1 ? "; first steps are slower than others" : ""));
  note(log.by_timers,
       "a step is DeepSpeed's fwd + bwd + step: what is between them, such as loading data, is not in it");
  note(log.neighbours_share,
       "each value is a mean over steps that neighbouring values include too, so there is no interval");
}

// Reports a lasting change. A shorter step is not a problem.
void add_change(double share, const std::string& headline, const std::string& text, const char* causes, Answer& out) {
  out.headline += headline;
  if (share > 0) out.problem(text, causes);
  if (share <= 0) out.notes.push_back(text);
}

void add_steadiness(const TrainingLog& log, const StepTimes& steps, bool seconds, Answer& out) {
  std::vector<double> distances;
  for (std::size_t i = 1; i < log.intervals.size(); ++i)
    distances.push_back(static_cast<double>(log.intervals[i].iteration - log.intervals[i - 1].iteration));
  const double distance = distances.empty() ? 0 : median(distances);
  out.fact("intervals", steps.intervals);
  out.fact("skipped", steps.skipped);
  if (distance > 0) out.fact("log_interval", static_cast<std::int64_t>(distance));
  if (steps.intervals > 1) out.fact("spread", steps.spread);
  out.fact("spikes", steps.spikes);
  if (steps.spikes > 0) out.fact("time_lost_to_spikes", percent(steps.lost));
  out.fact("drift", steps.drift ? signed_percent(*steps.drift) + " over the log" : "none");
  out.fact("jump", steps.jump ? signed_percent(steps.jump->share()) : "none");
  if (steps.counted > 1) {
    std::string text = fmt::format("within {} (1.4826 MAD) over {} values", percent(steps.spread), steps.counted);
    if (seconds && steps.low > 0 && !log.neighbours_share)
      text += fmt::format("; median {} [{}, {}]", seconds_text(steps.seconds), seconds_text(steps.low),
                          seconds_text(steps.high));
    out.tell("steady", text);
  }
  if (steps.skipped > 0) out.tell("left out", fmt::format("the first {}: start-up", plural(steps.skipped, "value")));
  if (!steps.jump && !steps.drift && steps.counted >= few_values)
    out.headline += fmt::format(": steady within {} over {} values", percent(steps.spread), steps.counted);
  add_how_to_read(log, steps, distance, out);
  if (steps.jump) {
    const double share = steps.jump->share();
    const std::int64_t at = log.intervals[std::min(steps.jump->at, log.intervals.size() - 1)].iteration;
    out.fact("jump_at_iteration", at);
    out.fact("step_before_s", steps.jump->before);
    add_change(
        share,
        fmt::format(": the step time {} by {:.0f} % at iteration {} and stayed", share > 0 ? "jumped" : "fell",
                    100 * std::abs(share), at),
        fmt::format("the step takes {} {} since iteration {}{}", percent(std::abs(share)), share > 0 ? "more" : "less",
                    at, seconds ? fmt::format(" ({} before)", seconds_text(steps.jump->before)) : ""),
        "clocks, a slower node after a restart, other jobs on the network; compare what the nodes logged then", out);
  }
  if (steps.drift)
    add_change(*steps.drift,
               fmt::format(": the step time creeps {} by {} over the log", *steps.drift > 0 ? "up" : "down",
                           percent(std::abs(*steps.drift))),
               fmt::format("the step time drifts by {} over the log", signed_percent(*steps.drift)),
               "growing garbage collection or logging, fragmented memory, falling clocks, filling storage", out);
  if (steps.spikes == 0) return;
  out.headline += fmt::format("; {}: {} of the time", plural(steps.spikes, "spike"), percent(steps.lost));
  std::string when;
  if (steps.period > 0)
    when = fmt::format(", every {:.0f} iterations: saving, evaluation or garbage collection",
                       static_cast<double>(steps.period) * std::max(1.0, distance));
  say(out.problems, "{} over 1.5 times the median: {} of the time{}", plural(steps.spikes, "value"),
      percent(steps.lost), when);
}

// Compares the log's own FLOP count with ours and names the convention that explains the difference.
void add_own_count(const TrainingLog& log, const analysis::ModelFlop& flop, double causal, Answer& out) {
  if (log.own_tflops <= 0) return;
  const double ratio = log.own_tflops / causal;
  constexpr double near = 0.02;
  std::string why = "another count of the model's FLOP or another peak: compare vocabulary and recomputation";
  if (std::abs(ratio - 1) < near) why = "it counts as we do";
  if (std::abs(ratio / (flop.noncausal / flop.causal) - 1) < near)
    why = "it counts attention in full, not its causal half";
  say(out.notes, "the log itself says {:.1f} TFLOP/s per GPU: {}", log.own_tflops, why);
}

// Reports the log's figures where the model is not known, so that there are none of ours.
void add_own_figures(const TrainingLog& log, Answer& out) {
  if (std::ranges::find(out.facts, "tflops_per_gpu", [](const auto& fact) { return fact.first; }) != out.facts.end())
    return;
  if (log.own_tflops > 0)
    say(out.notes, "the log itself says {:.1f} TFLOP/s per GPU, by its own count of the model's FLOP", log.own_tflops);
  if (log.own_mfu > 0)
    say(out.notes, "the log's own MFU, {}, is not ours: attention in full, and its peak is its own",
        percent(log.own_mfu));
}

void add_throughput(const TrainingLog& log, const Gaps& gaps, double seconds, std::int64_t global_batch,
                    std::int64_t ranks, Answer& out) {
  const auto sequence = static_cast<double>(log.size("sequence"));
  double tokens = ranks == 0 ? 0 : static_cast<double>(global_batch) * sequence / static_cast<double>(ranks) / seconds;
  if (tokens <= 0 && !log.intervals.empty())  // as logged for the step nearest to the median
    tokens = std::ranges::min_element(log.intervals, {}, [&](const Interval& interval) {
               return std::abs(interval.seconds - seconds);
             })->tokens_per_s_per_gpu;
  if (tokens <= 0) return;
  out.fact("tokens_per_s_per_gpu", tokens);
  out.headline += fmt::format(", {} tokens/s per GPU", grouped(tokens));
  const auto model = model_of(log);
  const auto flop = model ? analysis::flop_per_token(*model) : std::nullopt;
  if (!flop) return;
  constexpr double tera = 1e12;
  const double causal = tokens * flop->causal / tera;
  out.fact("tflops_per_gpu", causal);
  out.headline += fmt::format(", {:.0f} TFLOP/s per GPU", causal);
  add_own_count(log, *flop, causal, out);
  const auto hardware = hardware_of(log.gpu, gaps);
  const std::string precision = value_at(log.words, "precision", "");
  if (!hardware || precision.empty()) {
    out.notes.emplace_back("the GPU is not in the log: MFU needs it (--set hardware=h100-sxm)");
    return;
  }
  if (const auto published = analysis::published_steps({*model, hardware->gpu_file(), precision, ranks, causal});
      !published.text.empty())
    out.tell("published", published.text);
  const double peak = precision == "bf16" ? hardware->peak_flops(config::Precision::bf16) : 0;
  if (peak <= 0) return;
  out.fact("mfu", causal * tera / peak);
  out.tell("MFU", fmt::format("{} of {} ({}, dense {}), causal attention at half", percent(causal * tera / peak),
                              show_flops(peak), hardware->file, precision));
}

}  // namespace

Answer answer_of(const TrainingLog& log, const Gaps& gaps) {
  Answer out = Answer::of("log", "training log");
  const std::int64_t global_batch = gaps.global_batch_size > 0 ? gaps.global_batch_size : log.size("global_batch");
  const std::int64_t ranks = gaps.ranks > 0 ? gaps.ranks : log.size("ranks");
  add_job(log, global_batch, ranks, out);
  const Times measured = times_of(log, global_batch);
  const auto headline = [&](std::string text, double seconds, std::string_view rate = "") {
    out.headline = std::move(text);
    out.fact("step_time_s", rate.empty() ? Value(seconds) : Value("unknown"));
    if (!rate.empty()) out.fact(std::string(rate), 1 / seconds);
    if (rate.empty()) add_throughput(log, gaps, seconds, global_batch, ranks, out);
  };
  if (measured.values.size() >= 2 || (measured.values.size() == 1 && !log.whole_run)) {
    const StepTimes steps = judge_steps(measured.values);
    if (measured.seconds) {
      headline(fmt::format("{} per step", seconds_text(steps.seconds)), steps.seconds);
    } else if (log.intervals.front().samples_per_s > 0) {
      headline(fmt::format("{:.1f} samples/s on all ranks", 1 / steps.seconds), steps.seconds, "samples_per_s");
      out.notes.emplace_back("the step time needs the batch: --set global_batch_size=N");
    } else {
      headline(fmt::format("{} tokens/s per GPU", grouped(1 / steps.seconds)), steps.seconds, "tokens_per_s_per_gpu");
    }
    add_steadiness(log, steps, measured.seconds, out);
  } else if (log.whole_run && log.steps > 0) {
    const double seconds = log.run_seconds / static_cast<double>(log.steps);
    headline(fmt::format("{} per step, over the whole run of {} steps", seconds_text(seconds),
                         grouped(static_cast<double>(log.steps))),
             seconds);
    out.notes.emplace_back("the whole run counts, with start-up, evaluation and saving in it");
  } else {
    out.headline = "too few steps to say how long one takes";
  }
  add_own_figures(log, out);
  if (log.steps > 0) out.fact("steps", log.steps);
  if (log.restarts + log.batch_changes > 0)
    say(out.notes, "{} and {}: the longest run between them counts", plural(log.restarts, "restart"),
        plural(log.batch_changes, "new batch size"));
  if (log.too_long) out.notes.emplace_back("only the first million progress lines of a run count");
  std::vector<std::pair<std::string, TrainingLog::Failure>> in_order(log.failures.begin(), log.failures.end());
  std::ranges::stable_sort(in_order, {}, [](const auto& row) { return row.second.line; });
  for (const auto& [what, failure] : in_order)
    say(out.problems, "line {}: {}{}", failure.line, what,
        failure.count > 1 ? fmt::format(" ({} times)", failure.count) : "");
  if (measured.values.size() < 2 && !in_order.empty()) out.headline = "the job failed: " + in_order.front().first;
  const bool whole_nodes = ranks > 0 && ranks % 8 == 0;
  say(out.next, "mpirun -np {} --map-by ppr:8:node ./harness doctor     # is a node slow?",
      whole_nodes ? std::to_string(ranks) : "RANKS");
  if (measured.seconds && measured.values.size() == log.intervals.size()) {
    Value rows = Value::array();
    for (std::size_t i = 0; i < measured.values.size() && i < 10'000; ++i)
      rows.push_back({{"iteration", log.intervals[i].iteration}, {"seconds", measured.values[i]}});
    out.fact("by_iteration", std::move(rows));
  }
  return out;
}

}  // namespace harness::evidence
