#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "config/model.h"
#include "evidence/answer.h"
#include "evidence/training_log.h"

namespace harness::evidence {

class Shell;

/// A framework's key and value, as written in a file or on a command line.
struct ForeignSetting {
  std::string key;               // "--num-layers", "parallelism.tensor_parallel_degree"
  std::string value;             // "" for a switch
  std::string origin;            // location: "train.sh:17"
  std::string why_unknown = {};  // "": the value is known
  std::string framework = {};    // framework that defines the key; "": the job's
  bool is_field = false;         // "key: value", "key=value": the value decides, also of a switch
  bool is_assigned = false;      // "--key=value", not "--key value"

  /// Returns whether this is a switch of which it is not known whether it is on.
  bool is_open() const { return is_field && !why_unknown.empty(); }
};

/// Origin of settings from a log's dump of all arguments.
inline constexpr const char* dumped_arguments = "the log's arguments";

/// A job's value under its harness name, with its origin.
struct Given {
  std::string value;       // as in a configuration; display text if it is not a plain value ("2 x dp")
  std::string origin;      // "--num-layers, train.sh:17", "default of Megatron-LM", "64 ranks / (TP 4 x PP 4)"
  bool known = true;       // false: `value` is not valid in a configuration
  std::string shown = {};  // display text that says more than `value`; "": same as `value`
};

/// A training job as launch scripts and configurations describe it.
struct TrainingJob {
  std::string framework, kind = "config", launcher;
  std::vector<std::string> files;
  std::vector<ForeignSetting> settings;              // in order; the last setting of a key wins
  std::map<std::string, Given, std::less<>> values;  // by configuration name: "model.layers", "sharding"
  NameValues environment;                            // environment that reaches the ranks
  std::vector<std::string> problems, cannot, refused, notes;
  std::string headline = {};                     // most important finding; "": the shape of the job
  std::vector<std::string> more_arguments = {};  // why some program arguments are unknown
  bool lacks_files = false;                      // refers to configuration files that were not given
  std::vector<std::string> typed = {};           // values that the user supplied, as options of `read`

  void set(std::string_view name, std::string value, std::string origin, std::string shown = "") {
    values[std::string(name)] = {std::move(value), std::move(origin), true, std::move(shown)};
  }
  void set(std::string_view name, std::int64_t value, std::string origin, std::string shown = "") {
    set(name, std::to_string(value), std::move(origin), std::move(shown));
  }
  /// Sets a value unless the job already has one.
  template <class Text>
  void otherwise(std::string_view name, Text value, std::string origin) {
    if (!has(name)) set(name, std::move(value), std::move(origin));
  }
  /// Sets a value that is not known. `shown`: what is known of it ("2 x dp").
  void set_unknown(std::string_view name, std::string why, std::string shown = "unknown") {
    values[std::string(name)] = {std::move(shown), std::move(why), false, ""};
  }
  void otherwise_unknown(std::string_view name, std::string why) {
    if (!has(name)) set_unknown(name, std::move(why));
  }
  /// Sets a value that the job says in a form that cannot be read.
  void refuse(std::string_view name, const std::string& why) {
    set_unknown(name, why);
    add_once(refused, why);
  }
  bool has(std::string_view name) const { return values.contains(name); }
  /// Returns "" if the value is not known.
  std::string text(std::string_view name) const;
  std::optional<std::int64_t> number(std::string_view name) const;
  std::int64_t number_or(std::string_view name, std::int64_t otherwise) const {
    return number(name).value_or(otherwise);
  }
  /// Returns the degree of "tensor", "pipeline" or "context" parallelism; 1 if it is not known.
  std::int64_t degree(std::string_view axis) const;
  /// Returns the last setting of the first of these keys, separated by '|', that has one; nullptr: none has.
  const ForeignSetting* find(std::string_view keys) const;
  bool says(std::string_view keys) const { return find(keys) != nullptr; }
  std::string theirs(std::string_view key) const;
  std::optional<std::int64_t> their_number(std::string_view key) const { return number_in<std::int64_t>(theirs(key)); }
  /// Returns whether a switch is on. One that is open counts as off and is named in `refused`.
  bool is_on(std::string_view key);
  /// Sets a value by a switch; not known if the switch is open.
  void set_by_switch(std::string_view name, std::string_view key, const char* on, const char* off,
                     const std::string& origin);
  /// Returns whether the job runs on this framework or has settings of it.
  bool uses(std::string_view name) const;
  /// Adds a note once.
  template <class... Args>
  void note(fmt::format_string<Args...> text, Args&&... args) {
    add_once(notes, fmt::format(text, std::forward<Args>(args)...));
  }
};

/// Collects files of one job: scripts, framework and model configurations, here-documents in scripts.
class JobReader {
 public:
  /// Returns whether a text that begins with `head` is such a file.
  static bool recognises(std::string_view head);
  void file(std::string name, std::string text) { files_.emplace_back(std::move(name), std::move(text)); }
  /// Adds a text of unknown kind. It is read if a script sources it; otherwise not_read() reports `why`.
  void unknown(const std::string& name, std::string text, std::string why);
  const std::vector<std::string>& not_read() const { return not_read_; }
  /// Takes a hostfile, which may tell the launcher the number of ranks.
  void hosts(const Answer& hostfile) { hosts_ = hostfile.facts; }
  bool any() const { return !files_.empty(); }
  /// Returns the job that these files and a training log (nullptr: none) describe together. Where they differ, the log
  /// wins because it shows what ran. Throws Error for files that cannot be followed.
  TrainingJob finish(const Gaps& gaps, const TrainingLog* log);

 private:
  NameValues follow_scripts(TrainingJob& job);
  std::string take_documents(const NameValues& documents, const TrainingLog* log, TrainingJob& job) const;
  void count_hosts(TrainingJob& job) const;

  NameValues files_, unknown_;
  std::vector<std::string> not_read_;  // reasons for unread unknown texts
  decltype(Answer::facts) hosts_;
};

// ---- steps of JobReader, each in a source file of its own

/// Returns whether a text is a shell script that launches a program.
bool is_launch_script(std::string_view text);
/// Returns whether a text with this beginning is a harness configuration.
bool is_own_configuration(std::string_view text);
/// Returns whether a text is a nanoGPT configuration: Python assignments.
bool is_assignments(std::string_view text);

/// The options of a launcher, which precede its program: "--nproc_per_node 8", "-np=8". '-' and '_' in names are equal.
struct LauncherOptions {
  std::vector<std::string> words;

  /// Returns the last value given under one of these names, separated by '|', if any.
  std::optional<std::string> value(std::string_view names) const;
  bool has(std::string_view name) const { return std::ranges::find(words, name) != words.end(); }
};

/// Returns the settings of accelerate's configuration that its options stand for.
NameValues accelerate_settings(const LauncherOptions& options);
/// Returns the launcher and the program that the command of ms-swift, LLaMA-Factory, Axolotl or ColossalAI starts,
/// which take the ranks from the environment or from its options; nothing for any other command.
std::optional<std::vector<std::string>> command_of_front_end(const std::vector<std::string>& words,
                                                             const NameValues& environment);
/// Separates "-N2" and "-n16", as Slurm reads them.
std::vector<std::string> slurm_words(const std::vector<std::string>& words);
/// Parses a number of ranks, nodes or GPUs; returns nothing for any other text.
std::optional<std::int64_t> count_of(const std::optional<std::string>& text);
/// Returns the variables that Slurm sets because of lines such as "#SBATCH --nodes=8" in the script.
std::map<std::string, std::string> variables_of_batch(std::string_view script);
/// Adds the settings of a command line (program name first): "--key value …", "--key=value", "key=value", files.
void take_arguments(const std::vector<std::string>& words, const Shell& shell, const std::string& origin,
                    TrainingJob& job);
/// Follows a script to the program that it starts: ranks, environment and program settings (launch.cpp). `documents`:
/// receives texts that the script writes into files.
void read_script(const std::string& name, const std::string& text, const NameValues& files, TrainingJob& job,
                 NameValues& documents);
/// Returns the settings of a configuration in TOML, JSON, YAML or Python assignments, flattened: "training.seq_len"
/// (job_documents.cpp). Throws Error for any other text.
std::vector<ForeignSetting> settings_of_document(const std::string& name, const std::string& text);
/// Returns the framework that these keys belong to; "": none that is known.
std::string framework_of_document(const std::vector<ForeignSetting>& settings);
/// Fills in sizes and precision that a log lacks.
void complete(TrainingLog& log, const TrainingJob& job);
/// Translates the settings into harness names (job_keys.cpp).
void translate(TrainingJob& job);
/// Adds values that follow from a framework's own rules and defaults (job_rules.cpp, hugging_face_rules.cpp,
/// megatron_rules.cpp).
void conclude_framework(TrainingJob& job);
void conclude_hugging_face(TrainingJob& job);
void conclude_megatron(TrainingJob& job);
/// Notes that weights are sharded over `shard` ranks and replicated over `replicate` such groups.
void hybrid_sharding(TrainingJob& job, std::int64_t shard, std::int64_t replicate, const std::string& origin);
/// Sets the sizes of a model known by name. Returns false, and notes it, if the name is not known.
bool take_model(TrainingJob& job, const std::string& name, const std::string& origin);
/// Sets values that a job lacks: "recompute=none precision=bf16", or for its model "layers=12 biases=true".
void take_defaults(TrainingJob& job, std::string_view values, const std::string& from, std::string_view section = "");
inline void model_defaults(TrainingJob& job, std::string_view values, const std::string& from) {
  take_defaults(job, values, from, "model.");
}
/// Derives replicas, batch and accumulation from each other, and reports contradictions (job_shape.cpp).
void conclude_shape(TrainingJob& job);
/// Returns whether the job shards gradients or weights over the replicas of a pipeline, which harness does not support.
bool is_sharded_pipeline(const TrainingJob& job);
/// Returns the answer, with a harness configuration if enough of the job is known (job_answer.cpp).
Answer answer_of(const TrainingJob& job);
/// Returns the calibration for this kind of job; "": no particular one.
std::string calibration_of(const TrainingJob& job);
/// Returns the model as far as it is known; unknown sizes are 0.
config::Model model_of(const TrainingJob& job);

/// A fact of a job: its key in answers and TrainingLog::sizes, and its name among the job's values.
struct JobFact {
  std::string key, name;
  bool always = false;  // reported as "unknown" if absent
};
const std::vector<JobFact>& job_facts();

/// A job key that `--set` accepts.
struct GapKey {
  std::string key, name;  // "layers" is "model.layers" among a job's values
  bool number = false;    // a positive integer
};
const std::vector<GapKey>& gap_keys();

}  // namespace harness::evidence
