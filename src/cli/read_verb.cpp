#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/option_value.h"
#include "cli/output_file.h"
#include "cli/read_prediction.h"
#include "cli/verbs.h"
#include "config/experiment.h"
#include "config/hardware.h"
#include "evidence/input.h"
#include "evidence/read.h"
#include "evidence/training_job.h"
#include "report/clean_text.h"
#include "traces/answer.h"
#include "traces/prediction.h"

namespace harness::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t screen_width = 80, most_evidence = 10;

evidence::Gaps gaps_of(const std::vector<std::string>& fill) {
  evidence::Gaps gaps;
  static const std::vector<std::string> keys = {"ranks",
                                                "nodes",
                                                "global_batch_size",
                                                "hardware",
                                                "gpu",
                                                "layers",
                                                "hidden",
                                                "heads",
                                                "kv_heads",
                                                "ffn",
                                                "vocab",
                                                "sequence",
                                                "micro_batch_size",
                                                "precision",
                                                "tensor_parallel",
                                                "pipeline_parallel",
                                                "context_parallel",
                                                "sharding",
                                                "recompute",
                                                "ranks_per_node",
                                                "framework_version"};
  const auto number = [](std::string_view text) {
    const std::int64_t value = parse_integer(text);
    if (value < 1 || value > (1 << 20)) fail("found {}; allowed: 1 to 1048576", value);
    return value;
  };
  std::int64_t nodes = 0, per_node = 0;
  for (const std::string& entry : fill) {
    const std::size_t equals = entry.find('=');
    const std::string key = entry.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : entry.substr(equals + 1);
    if (value.empty()) fail("--set {}: expected KEY=VALUE, such as ranks=16", quote(entry));
    if (key == "ranks") {
      gaps.ranks = option_value("--set ranks", value, number);
    } else if (key == "nodes") {
      nodes = option_value("--set nodes", value, number);
    } else if (key == "global_batch_size") {
      gaps.global_batch_size = option_value("--set global_batch_size", value, number);
    } else if (key == "hardware" || key == "gpu") {
      const config::Hardware hardware = option_value(
          "--set " + key, value, [](std::string_view name) { return config::hardware_named(std::string(name)); });
      gaps.hardware = hardware.file;
      if (per_node == 0) per_node = hardware.gpus_of_node;
    } else if (const std::string name = evidence::name_of_gap(key); !name.empty()) {
      static const std::vector<std::string> words{"precision", "sharding", "recompute", "framework_version"};
      if (std::ranges::find(words, key) == words.end()) option_value("--set " + key, value, number);
      if (key == "ranks_per_node") per_node = parse_integer(value);
      gaps.others.emplace_back(name, value);
    } else {
      fail("--set {}: there is no such key of `read`; allowed: {}{}", quote(key), join(keys, ", "),
           did_you_mean(nearest(key, keys)));
    }
  }
  constexpr std::int64_t usual_node = 8;
  if (nodes > 0 && gaps.ranks == 0) gaps.ranks = nodes * (per_node > 0 ? per_node : usual_node);
  return gaps;
}

// A label in a column of its own, the text beside it.
void print_row(std::ostream& out, std::string_view label, std::string_view text, std::size_t column) {
  std::string lines = report::wrapped(text, screen_width - column - 2, 0);
  while (lines.ends_with('\n')) lines.pop_back();
  const std::string shown = report::one_line(label);
  out << "  " << shown << std::string(column - std::min(column, report::columns_of(shown)), ' ')
      << replaced(lines, {{'\n', "\n" + std::string(column + 2, ' ')}}) << "\n";
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
  for (const std::string& command : answer.next) out << "  " << report::one_line(command) << "\n";  // one line to paste
}

Json json_of(const evidence::Answer& answer) {
  Json facts = Json::object();
  for (const auto& [key, value] : answer.facts)
    std::visit([&facts, &name = key](const auto& typed) { facts[name] = typed; }, value);
  for (const evidence::Series& series : answer.series) {
    Json& rows = facts[series.name] = Json::array();
    for (const std::vector<double>& row : series.rows) {
      Json& object = rows.emplace_back(Json::object());
      for (std::size_t i = 0; i < series.columns.size(); ++i) object[series.columns[i]] = row[i];
    }
  }
  Json evidence = Json::array();
  for (const auto& [label, text] : answer.evidence) evidence.push_back({{"label", label}, {"text", text}});
  Json json{{"kind", answer.kind},     {"files", answer.files},     {"headline", answer.headline},
            {answer.object, facts},    {"evidence", evidence},      {"problems", answer.problems},
            {"cannot", answer.cannot}, {"refused", answer.refused}, {"notes", answer.notes},
            {"next", answer.next}};
  if (!answer.members.empty()) json.update(Json::parse(answer.members));
  return json;
}

// Writes the job of these answers as a configuration, and says on stderr what in it is not as in the job.
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

// The first answer's keys stand at the top; `also` has the others.
std::string json_text(const std::vector<evidence::Answer>& answers) {
  Json json{{"schema", "harness-read"}, {"schema_version", 1}};
  json.update(json_of(answers.front()));
  Json also = Json::array();
  for (std::size_t i = 1; i < answers.size(); ++i) also.push_back(json_of(answers[i]));
  json["also"] = also;
  return json.dump(2, ' ', true, Json::error_handler_t::replace);
}

bool is_configuration(const std::string& path) {
  return path != "-" && evidence::is_own_configuration(evidence::Input(path).head());
}

// Traces make one answer together, which comes first. A configuration, or a script that makes one, says what their step
// should take.
std::vector<evidence::Answer> answers_of(const ReadOptions& options) {
  const evidence::Gaps gaps = gaps_of(options.fill);
  std::vector<std::string> traces, configurations, others;
  for (const std::string& path : options.files) {
    const bool is_trace = path != "-" && traces::is_trace_file(path);
    (is_trace ? traces : others).push_back(path);
  }
  if (traces.empty()) return evidence::read_files(others, gaps);
  std::ranges::copy_if(others, std::back_inserter(configurations), is_configuration);
  std::erase_if(others, is_configuration);
  const std::vector<traces::Report> reports = traces::read_traces(traces);
  std::vector<evidence::Answer> answers{traces::answer_of(reports)};
  answers.front().members = traces::json_of(reports);
  const auto set_beside = [&](const std::string& path, const auto& load) {
    try {
      answers.push_back(traces::answer_of(traces::beside_prediction(reports.back(), load()), path));
    } catch (const Error& error) {
      answers.front().refused.push_back(error.what());
    }
  };
  const std::vector<std::string> simulated{"backend=sim"};
  for (const std::string& path : configurations)
    set_beside(path, [&] { return config::load_experiment(path, simulated); });
  if (others.empty()) return answers;
  for (evidence::Answer& answer : evidence::read_files(others, gaps)) {
    if (!answer.configuration.empty()) {
      set_beside(join(answer.files, ", "),
                 [&] { return config::load_recorded(answer.configuration, "job.yaml", simulated); });
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace

int read(const ReadOptions& options, std::ostream& out) {
  std::vector<evidence::Answer> answers = answers_of(options);
  add_prediction(answers);
  if (!options.output.empty()) write_configuration(answers, options);
  if (options.format == "json") {
    out << json_text(answers) << "\n";
    return 0;
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (i > 0) out << "\n";
    print(answers[i], out);
  }
  return 0;
}

}  // namespace harness::cli
