#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <ostream>
#include <span>

#include "base/text.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/plan.h"
#include "cli/verbs.h"
#include "config/fields.h"
#include "config/hardware.h"
#include "evidence/answer.h"
#include "evidence/input.h"
#include "evidence/training_job.h"
#include "report/document.h"
#include "report/json.h"
#include "traces/answer.h"

namespace harness::cli {
namespace {

using evidence::Answer;
using evidence::seconds_text;

template <class Type>
std::optional<Type> fact_of(const Answer& answer, std::string_view key) {
  for (const auto& [name, value] : answer.facts) {
    if (name == key && value.is_number()) return value.template get<Type>();
  }
  return std::nullopt;
}

void judge(Answer& log, const std::vector<Answer>& answers, double measured, const PredictedCase& predicted) {
  const double ratio = measured / predicted.step->step_s;
  constexpr double as_predicted = 1.25, faster = 0.8;  // at least the error of predictions of published steps
  if (ratio < faster) {
    log.evidence.emplace_back("beside it",
                              fmt::format("the measured step takes {:.2f} of that: check what a step is", ratio));
    return;
  }
  if (ratio <= as_predicted) {
    log.headline += "; normal: as predicted";
    log.evidence.emplace_back("beside it", fmt::format("{:.2f} times the predicted step: normal", ratio));
    return;
  }
  const double lost = measured - predicted.step->step_s;
  const std::string slower = fmt::format("{:.1f} times the predicted", ratio);
  log.headline += fmt::format("; {} step", slower);
  log.evidence.emplace_back("lost",
                            fmt::format("{} of each step, {} of it", seconds_text(lost), percent(lost / measured, 0)));
  const auto cause = std::ranges::find_if(answers, [&](const Answer& answer) {
    return &answer != &log && answer.object == "nccl" && !answer.problems.empty();
  });
  if (cause == answers.end()) {
    log.problems.push_back(
        fmt::format("the step is {} one: an NCCL log (NCCL_DEBUG=INFO) beside it may name the cause", slower));
    return;
  }
  log.problems.insert(log.problems.begin(), fmt::format("the step is {} one, and the NCCL log names a cause: {}",
                                                        slower, cause->problems.front()));
  log.headline += ": " + cause->headline;
  if (!cause->next.empty()) log.next = cause->next;
}

// Raises the memory limit, because a job that runs fits, even if its prediction says otherwise. A sweep keeps the
// limit.
void allow_memory(Answer& job, double share, const std::string& why) {
  constexpr std::string_view baseline = "\nbaseline:\n";
  const std::size_t at = job.configuration.find(baseline);
  const config::Experiment experiment = config::load_experiment("job.yaml", {}, job.configuration);
  if (at == std::string::npos || !config::traits_of(experiment.backend).predicts()) return;
  job.configuration.insert(
      at + baseline.size(),
      fmt::format("{:<40} # {}\n", fmt::format("  memory_cap: {:.0f} %", std::ceil(100 * share)), why));
}

// Predicts the step of a job that the answers describe, and compares it with the measured step of a log: as predicted,
// or the evidence that names the cause of the difference. Does nothing if the job, its ranks or its GPU are unknown.
void add_prediction(std::vector<Answer>& answers) {
  const auto job = std::ranges::find_if(answers, [](const Answer& answer) { return !answer.configuration.empty(); });
  if (job == answers.end()) return;
  const auto ranks = fact_of<std::int64_t>(*job, "ranks");
  constexpr std::int64_t most = 4096;  // larger jobs take too long for an interactive answer
  if (!ranks || *ranks > most) return;
  const auto log = std::ranges::find(answers, "log", &Answer::object);
  const auto measured = log == answers.end() ? std::nullopt : fact_of<double>(*log, "step_time_s");
  Answer& to = measured ? *log : *job;
  try {
    std::vector<std::string> overrides{config::predict, "memory_cap=1000 %"};
    if (!job->calibration.empty()) overrides.push_back("calibration=" + job->calibration);
    const config::Experiment experiment = config::load_experiment("job.yaml", overrides, job->configuration);
    if (!experiment.hardware) {
      to.notes.emplace_back("what the step should take needs the GPU: --set hardware=h100-sxm");
      return;
    }
    const auto count = static_cast<int>(*ranks);
    const auto each = fact_of<std::int64_t>(*job, "ranks_per_node");
    const plan::Plan plan = plan::prepare(experiment, count, {}, plan::Processes::as_needed,
                                          planned_topology(experiment, count, static_cast<int>(each.value_or(0))));
    const PredictedCase predicted = predict_case(plan, network_of(plan), plan.baseline());
    if (!predicted.step) throw Error(predicted.unknown);
    const double needed = plan::planned_memory_bytes(experiment, plan.baseline());
    if (needed > experiment.hardware->memory_bytes) {
      to.notes.push_back(
          fmt::format("harness's own step of this job would need {} per rank, and the GPU has {}: the job keeps less",
                      show_bytes(needed), show_bytes(experiment.hardware->memory_bytes)));
      allow_memory(*job, needed / experiment.hardware->memory_bytes, to.notes.back());
    }
    const double seconds = predicted.step->step_s;
    to.facts.emplace_back("predicted_step_s", seconds);
    to.evidence.emplace_back("predicted",
                             fmt::format("{}{} (simulated for {}; expected error {})", seconds_text(seconds),
                                         predicted.mfu ? fmt::format(", MFU {}", percent(*predicted.mfu)) : "",
                                         experiment.hardware->file, predicted.trust.error_words));
    const program::StepSplit& split = predicted.step->split;
    to.evidence.emplace_back("of which", fmt::format("{} computation, {} communication that nothing covers, {} neither",
                                                     seconds_text(split.compute_s), seconds_text(split.exposed_s),
                                                     seconds_text(split.idle_s)));
    if (measured) judge(*log, answers, *measured, predicted);
  } catch (const Error& error) {
    to.notes.push_back(fmt::format("no prediction: {}", error.what()));
  }
}

using Json = report::Json;

constexpr std::size_t screen_width = 80, most_evidence = 10;

evidence::Gaps gaps_of(const std::vector<std::string>& fill) {
  evidence::Gaps gaps;
  std::int64_t nodes = 0, per_node = 0;
  const std::map<std::string, std::int64_t*> numbers{
      {"ranks", &gaps.ranks}, {"nodes", &nodes}, {"global_batch_size", &gaps.global_batch_size}};
  std::vector<std::string> keys{"ranks", "nodes", "global_batch_size", "hardware", "gpu"};
  for (const evidence::GapKey& of_job : evidence::gap_keys()) keys.push_back(of_job.key);
  for (const std::string& entry : fill) {
    const std::size_t equals = entry.find('=');
    const std::string key = entry.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : entry.substr(equals + 1);
    if (value.empty()) fail("--set {}: expected KEY=VALUE, such as ranks=16", quote(entry));
    gaps.typed.push_back("--set " + shell_word(entry));
    const auto number = [&] {
      return option_value("--set " + key, value,
                          [](std::string_view text) { return config::parse_within(text, 1, 1 << 20); });
    };
    const auto of_job = std::ranges::find(evidence::gap_keys(), key, &evidence::GapKey::key);
    if (const auto into = numbers.find(key); into != numbers.end()) {
      *into->second = number();
    } else if (key == "hardware" || key == "gpu") {
      const config::Hardware hardware = option_value(
          "--set " + key, value, [](std::string_view name) { return config::hardware_named(std::string(name)); });
      gaps.hardware = hardware.file;
      if (per_node == 0) per_node = hardware.gpus_of_node;
    } else if (of_job != evidence::gap_keys().end()) {
      const std::int64_t count = of_job->number ? number() : 0;
      if (key == "ranks_per_node") per_node = count;
      gaps.others.emplace_back(of_job->name, value);
    } else {
      fail("--set {}: there is no such key of `read`; allowed: {}{}", quote(key), join(keys, ", "),
           did_you_mean(nearest(key, keys)));
    }
  }
  if (nodes == 0 || gaps.ranks > 0) return gaps;
  if (per_node == 0)
    fail("--set nodes={}: how many ranks has a node? add --set ranks_per_node=8, or --set ranks=N", nodes);
  gaps.ranks = nodes * per_node;
  return gaps;
}

void print_row(std::ostream& out, std::string_view label, std::string_view text, std::size_t column) {
  const std::vector<std::string> lines = split_text(report::wrapped(text, screen_width - column - 2, 0), "\n");
  const std::string shown = report::one_line(label);
  out << "  " << shown << std::string(column - std::min(column, report::columns_of(shown)), ' ')
      << join(lines, "\n" + std::string(column + 2, ' ')) << "\n";
}

void print(const evidence::Answer& answer, std::ostream& out) {
  out << report::wrapped(fmt::format("{}: {}", join_first(answer.files, 3), answer.kind), screen_width, 2)
      << report::wrapped(answer.headline + ".", screen_width, 0);
  std::size_t column = 0;
  for (const auto& [label, text] : answer.evidence) column = std::max(column, report::columns_of(label) + 2);
  if (!answer.evidence.empty()) out << "\n";
  for (std::size_t i = 0; i < std::min(answer.evidence.size(), most_evidence); ++i)
    print_row(out, answer.evidence[i].first, answer.evidence[i].second, std::min<std::size_t>(column, 24));
  const auto list = [&](const std::string& mark, const std::vector<std::string>& lines) {
    if (!lines.empty()) out << "\n";
    for (const std::string& line : lines) out << report::wrapped(mark + line, screen_width, 2);
  };
  list("! ", answer.problems);
  list("limit: ", answer.cannot);
  list("not read: ", answer.refused);
  list("- ", answer.notes);
  if (!answer.next.empty()) out << "\nNext:\n";
  for (const std::string& command : answer.next)
    out << "  " << report::one_line(command) << "\n";  // one line, to paste
}

Json json_of(const evidence::Answer& answer) {
  Json facts = Json::object();
  for (const auto& [key, value] : answer.facts) facts[key] = value;
  const auto line_json = [](const auto& line) -> Json { return {{"label", line.first}, {"text", line.second}}; };
  const Json evidence = report::json_list(answer.evidence, line_json);
  Json json{{"kind", answer.kind},     {"files", answer.files},     {"headline", answer.headline},
            {answer.object, facts},    {"evidence", evidence},      {"problems", answer.problems},
            {"cannot", answer.cannot}, {"refused", answer.refused}, {"notes", answer.notes},
            {"next", answer.next}};
  if (!answer.members.empty()) json.update(answer.members);
  return json;
}

void write_configuration(const std::vector<evidence::Answer>& answers, const ReadOptions& options) {
  const auto job = std::ranges::find_if(answers, [](const auto& answer) { return !answer.configuration.empty(); });
  if (job == answers.end()) {
    const auto script = std::ranges::find(answers, "job", &evidence::Answer::object);
    std::string why = "no file describes a job: give its launch script or configuration";
    if (script != answers.end()) why = script->notes.empty() ? script->headline : script->notes.back();
    fail("-o {}: {}", quote(options.output), why);
  }
  write_output(options.output, job->configuration, options.force);
  for (const std::string& text : job->cannot) std::cerr << report::wrapped("limit: " + text, screen_width, 2);
  for (const std::string& text : job->refused) std::cerr << report::wrapped("not read: " + text, screen_width, 2);
}

// The first answer's keys are at the top level; `also` holds the others.
std::string json_text(const std::vector<evidence::Answer>& answers) {
  Json json{{"schema", "harness-read"}, {"schema_version", 1}};
  json.update(json_of(answers.front()));
  json["also"] = report::json_list(std::span(answers).subspan(1), [](const auto& answer) { return json_of(answer); });
  return report::json_text(json);
}

// An unreadable file is none: reading it says why.
bool is_configuration(const std::string& path) {
  try {
    return path != "-" && evidence::is_own_configuration(evidence::Input(path).head());
  } catch (const Error&) {
    return false;
  }
}

// Traces form one answer, which comes first. A configuration, or a script that yields one, predicts their step. What
// cannot be read is `refused` in the first answer; throws Error if nothing can be read.
std::vector<evidence::Answer> answers_of(const ReadOptions& options) {
  const evidence::Gaps gaps = gaps_of(options.fill);
  std::vector<std::string> traces, configurations, others, refused;
  for (const std::string& path : options.files) {
    (traces::is_trace_file(path) ? traces : others).push_back(path);
  }
  if (traces.empty()) return evidence::read_files(others, gaps);
  const auto attempt = [&refused](const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      refused.emplace_back(error.what());
    }
  };
  std::vector<traces::Report> reports;
  std::vector<evidence::Answer> answers;
  attempt([&] {
    reports = traces::read_traces(traces);
    answers.push_back(traces::answer_of(reports));
    answers.front().members = traces::json_of(reports);
  });
  const auto set_beside = [&](const std::string& path, const auto& load) {
    attempt([&] { answers.push_back(traces::answer_of(traces::beside_prediction(reports.back(), load()), path)); });
  };
  const std::vector<std::string> simulated{config::predict};
  if (!reports.empty()) {
    std::ranges::copy_if(others, std::back_inserter(configurations), is_configuration);
    std::erase_if(others, is_configuration);
  }
  for (const std::string& path : configurations)
    set_beside(path, [&] { return config::load_experiment(path, simulated); });
  const auto read_others = [&] {
    for (evidence::Answer& answer : evidence::read_files(others, gaps)) {
      if (!reports.empty() && !answer.configuration.empty()) {
        set_beside(join(answer.files, ", "),
                   [&] { return config::load_experiment("job.yaml", simulated, answer.configuration); });
      }
      answers.push_back(std::move(answer));
    }
  };
  if (!others.empty()) attempt(read_others);
  if (answers.empty()) throw Error(join(refused, "\n"));
  std::ranges::move(refused, std::back_inserter(answers.front().refused));
  return answers;
}

}  // namespace

int read(const ReadOptions& options, std::ostream& out) {
  std::vector<evidence::Answer> answers = answers_of(options);
  add_prediction(answers);
  if (!options.output.empty()) write_configuration(answers, options);
  if (options.format == "json") {
    out << json_text(answers);
    return 0;
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (i > 0) out << "\n";
    print(answers[i], out);
  }
  return 0;
}

}  // namespace harness::cli
