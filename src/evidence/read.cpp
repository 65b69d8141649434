#include <algorithm>
#include <array>
#include <filesystem>

#include "base/text.h"
#include "evidence/answer.h"
#include "evidence/bandwidths.h"
#include "evidence/devices.h"
#include "evidence/input.h"
#include "evidence/nccl_use.h"
#include "evidence/training_job.h"
#include "evidence/training_log.h"

namespace harness::evidence {
namespace {

// Rejects known kinds of files that are not supported, each with its remedy.
void refuse(const std::string& name, std::string_view head) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kinds{{
      {"\x89HDF", "it is a result of harness: ./harness show FILE"},
      {"PK\x03\x04", "it is a zip archive: unpack it first"},
      {"\x28\xb5\x2f\xfd", "it is packed with zstd: zstdcat FILE | ./harness read -"},
      {"\xfd"
       "7zXZ",
       "it is packed with xz: xzcat FILE | ./harness read -"},
      {"BZh", "it is packed with bzip2: bzcat FILE | ./harness read -"},
  }};
  for (const auto& [begins, why] : kinds) {
    if (head.starts_with(begins)) fail("{}: {}", quote(name), why);
  }
  const bool pickle = head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
  if (pickle)
    fail(
        "{}: it is a Python pickle, which is a program; of a Flight Recorder dump that you trust: python3 -c 'import "
        "json, pickle, sys; json.dump(pickle.load(open(sys.argv[1], \"rb\")), sys.stdout)' FILE | ./harness read -",
        quote(name));
}

// Returns whether a job printed the text. Users paste the command above, which alone would be a launch script.
bool is_output(std::string_view head) {
  static const std::vector<std::string_view> marks = split(
      "elapsed time per iteration (ms):|elapsed_time_per_iteration_ms=|elapsed time per iteration (s):|"
      "train_step_timing in s:|CurrSamplesPerSec=|# Avg bus bandwidth    :|'train_runtime':|'loss':| tps:|"
      "completed step:|[batch=|, mfu |WorkNCCL(SeqNum=",
      '|');
  if (has_any(head, "] NCCL INFO | NCCL WARN |: Test NCCL failure |: Test CUDA failure ")) return true;
  const auto is_printed = [&](std::string_view line) {
    const bool comment = trim(line).starts_with('#');  // of a script, which may quote what it prints
    return std::ranges::any_of(marks, [&](std::string_view mark) {
      return (!comment || mark.starts_with('#')) && number_after(line, mark).has_value();
    });
  };
  return std::ranges::any_of(split(head, '\n'), is_printed);
}

// Returns the text without colours and control bytes.
std::string plain_text(Input& input, std::size_t most) {
  std::string text;
  Lines lines(input);
  for (std::string_view line; lines.next(line);) {
    text.append(line) += '\n';
    if (text.size() > most) fail("it is longer than what a text of this kind may be");
  }
  return text;
}

class Reading {
 public:
  explicit Reading(const Gaps& gaps) : gaps_(gaps) {}
  void file(const std::string& path);
  std::vector<Answer> finish(std::vector<std::string>& refused);

 private:
  std::vector<Answer> about_the_job(std::vector<std::string>& refused);
  void take(Input& input, std::string_view head);
  bool log(Input& input, const std::string& path);
  void add(Answer answer, const std::string& path) {
    answer.files.push_back(path);
    single_.push_back(std::move(answer));
  }
  void bandwidths(std::vector<Bandwidths> runs, const std::string& path);

  const Gaps& gaps_;
  std::vector<Answer> bandwidths_, single_;
  std::vector<Bandwidths> runs_;  // runs with an answer each, for comparisons
  NcclUseReader nccl_;
  std::vector<std::string> nccl_files_, inspector_files_, recorder_files_;
  InspectorReader inspector_;
  FlightRecorder recorder_;
  JobReader job_;
  std::vector<std::pair<TrainingLog, std::string>> logs_;  // logs and their files
};

void Reading::bandwidths(std::vector<Bandwidths> runs, const std::string& path) {
  if (runs.empty()) return;
  std::int64_t first_ranks = 0;
  for (const Bandwidths& run : runs) first_ranks += run.first_ranks;
  const bool alone = std::ranges::all_of(runs, [](const Bandwidths& run) {
    return run.ranks == run.first_ranks && !run.rows.empty() &&
           std::ranges::all_of(run.rows, [](const SizeRow& row) { return row.busbw() == 0; });
  });
  if (first_ranks > 1 && alone) {
    bandwidths_.push_back(answer_of_single_ranks(runs));
    bandwidths_.back().files.push_back(path);
    return;
  }
  for (Bandwidths& run : runs) {
    bandwidths_.push_back(answer_of(run, gaps_));
    bandwidths_.back().files.push_back(path);
    runs_.push_back(std::move(run));
  }
}

// Returns whether the input is a log. One pass, because a job's log often contains NCCL's log, a test and the steps.
bool Reading::log(Input& input, const std::string& path) {
  Lines lines(input);
  TrainingLogReader training;
  NcclTestsReader tests(std::filesystem::path(path).filename().string());
  OsuReader osu;
  bool any_nccl = false, failed = false, said_next = false;  // said_next: NCCL's last error is on the next line
  std::string beginning;                                     // scripts print the topology first
  constexpr std::size_t longest_beginning = 1u << 16;
  for (std::string_view text; lines.next(text);) {
    Line line = without_prefixes(text, lines.number());
    if (beginning.size() < longest_beginning) beginning.append(line.text.substr(0, longest_beginning)) += '\n';
    failed = failed || contains(line.text, "NCCL error");
    if (Cursor c{line.text}; std::exchange(said_next, false) || (failed && c.after("Last error:"))) {
      said_next = trim(c.rest).empty();
      any_nccl = nccl_.last_error({trim(c.rest), line.number}) || any_nccl;
    }
    const std::size_t nccl = std::min(line.text.find("NCCL INFO "), line.text.find("NCCL WARN "));
    if (nccl != std::string_view::npos || line.text.starts_with("NCCL version ")) {
      training.before_nccl({line.text.substr(0, nccl), line.number});
      if (const std::size_t end = row_part_in(line.text); end > 0) {
        tests.line({line.text.substr(0, end), line.number});
        line = without_prefixes(line.text.substr(end), line.number);
      }
      any_nccl = nccl_.line(line) || any_nccl;
      continue;
    }
    training.line(line);
    tests.line(line);
    osu.line(line);
  }
  if (any_nccl) nccl_files_.push_back(path);
  const std::size_t before = bandwidths_.size();
  bandwidths(tests.finish(), path);
  bandwidths(osu.finish(), path);
  const bool any_matrix = is_topology_matrix(beginning);
  if (any_matrix) add(topology_matrix(beginning), path);
  const bool found = any_nccl || any_matrix || bandwidths_.size() > before;
  const TrainingLog log = training.finish();
  const bool trained = !log.framework.empty() || (!found && !log.failures.empty());  // it may fail before step 1
  if (trained) logs_.emplace_back(log, path);
  return found || trained;
}

// Reads an input by the kind that its content tells. A text of no other kind is a log: any mix of the output of
// training, NCCL, nccl-tests, OSU and `nvidia-smi topo -m`.
void Reading::take(Input& input, std::string_view head) {
  constexpr std::size_t longest_text = 16u << 20, longest_configuration = 4u << 20;
  const std::string& name = input.name();
  std::string text(head.size() < Input::head_bytes ? head : "");
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  const std::string_view first = head.substr(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
  const std::string_view beginning = head.substr(0, std::min<std::size_t>(head.size(), 65536));
  // A paste may begin with a sentence or a fence, and a script may write such a file.
  const std::size_t preface = contains(beginning, "<<") ? 0 : 512;
  const std::string_view opening = beginning.substr(0, first.starts_with('<') ? std::string_view::npos : preface);
  if (contains(opening, "<graphs version")) return add(nccl_graphs(whole_text(input, longest_text)), name);
  if (contains(opening, "<system version")) return add(nccl_topology(whole_text(input, longest_text)), name);
  if (first.starts_with('{')) {
    if (has_any(beginning, "\"coll_perf\"|\"p2p_perf\"")) {
      Lines lines(input);
      for (std::string_view line; lines.next(line);) inspector_.line(line);
      return inspector_files_.push_back(name);
    }
    const bool nccl_tests = has_all(beginning, "\"nccl_version\"&\"config\"");
    // PyTorch writes its JSON with sorted keys: "pg_config" may be megabytes behind "entries".
    const bool recorded =
        contains(beginning, "\"pg_config\"") || (!nccl_tests && has_any(head, "\"pg_config\"|\"collective_seq_id\""));
    if (recorded && contains(head, "\"entries\"")) {
      recorder_.file(whole_text(input, longest_json), name);
      return recorder_files_.push_back(name);
    }
    if (nccl_tests) return bandwidths({nccl_tests_json(whole_text(input, longest_json))}, name);
  }
  if (!is_topology_matrix(beginning)) {
    if (head.size() < Input::head_bytes && is_hostfile(head)) {
      add(hostfile(whole_text(input, longest_text)), name);
      return job_.hosts(single_.back());
    }
    if (!is_output(head) && JobReader::recognises(head))
      return job_.file(name, plain_text(input, longest_configuration));
  }
  if (log(input, name)) return;
  std::string why = fmt::format(
      "{}: not recognised: `read` takes logs of training, NCCL and bandwidth tests, launch scripts, configurations of "
      "jobs, dumps of NCCL and PyTorch, hostfiles and traces (docs/read.md)",
      quote(name));
  if (text.empty()) throw Error(why);
  job_.unknown(name, std::move(text), std::move(why));
}

void Reading::file(const std::string& path) {
  Input input(path);
  const std::string& name = input.name();
  const std::string_view head = input.head();
  if (head.empty()) fail("{}: it is empty", quote(name));
  refuse(name, head);
  if (is_own_configuration(head))
    fail("{}: it is a configuration of harness: ./harness plan FILE, or give it beside a trace", quote(name));
  try {
    take(input, head);
  } catch (const Error& error) {
    const std::string said = error.what();
    if (contains(said, quote(name))) throw;
    fail("{}: {}", quote(name), error.what());
  }
}

// Combines the steps of logs with the job; each completes the other.
std::vector<Answer> Reading::about_the_job(std::vector<std::string>& refused) {
  for (auto& [log, path] : logs_) {
    try {
      if (!log.arguments.empty()) complete(log, JobReader().finish({}, &log));
    } catch (const Error& error) {
      refused.emplace_back(error.what());
    }
  }
  const auto says_most = std::ranges::max_element(logs_, {}, [](const auto& log) { return log.first.sizes.size(); });
  const TrainingLog* log = logs_.empty() ? nullptr : &says_most->first;
  std::optional<TrainingJob> job;
  if (job_.any() || (log != nullptr && log->size("layers") > 0)) {
    try {
      job = job_.finish(gaps_, log);
    } catch (const Error& error) {
      refused.emplace_back(error.what());
    }
  }
  std::vector<Answer> all;
  Gaps gaps = gaps_;
  if (job && gaps.hardware.empty()) gaps.hardware = job->text("hardware");
  for (auto& [steps, path] : logs_) {
    if (job) complete(steps, *job);
    all.push_back(answer_of(steps, gaps));
    all.back().files.push_back(path);
  }
  if (!job) return all;
  Answer answer = answer_of(*job);
  if (job_.any()) {
    all.push_back(std::move(answer));
  } else {
    all.front().configuration = std::move(answer.configuration);
    all.front().calibration = std::move(answer.calibration);
  }
  return all;
}

std::vector<Answer> Reading::finish(std::vector<std::string>& refused) {
  std::vector<Answer> all = about_the_job(refused);
  if (runs_.size() == 2 && bandwidths_.size() == 2 && runs_[0].collective() == runs_[1].collective()) {
    auto& evidence = bandwidths_[1].evidence;
    evidence.resize(std::min<std::size_t>(evidence.size(), 4));
    std::ranges::move(compared(runs_[0], runs_[1]), std::back_inserter(evidence));
  }
  std::ranges::move(bandwidths_, std::back_inserter(all));
  const auto add_joined = [&](const std::vector<std::string>& files, const auto& answer) {
    if (files.empty()) return;
    all.push_back(answer());
    all.back().files = files;
  };
  add_joined(nccl_files_, [&] { return answer_of(nccl_.finish()); });
  add_joined(inspector_files_, [&] { return inspector_.finish(); });
  add_joined(recorder_files_, [&] { return recorder_.finish(); });
  std::ranges::move(single_, std::back_inserter(all));
  std::ranges::copy(job_.not_read(), std::back_inserter(refused));
  return all;
}

}  // namespace

std::optional<config::Hardware> hardware_of(const std::string& gpu, const Gaps& gaps) {
  if (!gaps.hardware.empty()) return config::hardware_named(gaps.hardware);
  if (gpu.empty() || gpu.starts_with("AMD")) return std::nullopt;
  try {
    return config::find_hardware_for_device(gpu.starts_with("Tesla ") ? gpu : "NVIDIA " + gpu, "");
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<Answer> read_files(const std::vector<std::string>& paths, const Gaps& gaps) {
  Reading reading(gaps);
  std::vector<std::string> refused;
  for (const std::string& path : paths) {
    try {
      reading.file(path);
    } catch (const Error& error) {
      if (paths.size() == 1) throw;
      refused.emplace_back(error.what());
    }
  }
  std::vector<Answer> answers = reading.finish(refused);
  if (answers.empty()) throw Error(join(refused, "\n"));
  std::ranges::move(refused, std::back_inserter(answers.front().refused));
  return answers;
}

}  // namespace harness::evidence
