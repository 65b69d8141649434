#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
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

/// A key of a framework with its value, as a file or a command line has it.
struct ForeignSetting {
  std::string key;               // "--num-layers", "parallelism.tensor_parallel_degree"
  std::string value;             // "" for a switch
  std::string origin;            // where it stands: "train.sh:17"
  std::string why_unknown = {};  // "" where the value is known
  std::string framework = {};    // whose key it is; "": that of the job
};

/// The origin of settings that a log's dump of all arguments says.
inline constexpr const char* dumped_arguments = "the log's arguments";

/// A value of a job by our name, with where it is from.
struct Given {
  std::string value;       // as a configuration has it, or for people where it is no plain value ("2 x dp")
  std::string origin;      // "--num-layers, train.sh:17", "default of Megatron-LM", "64 ranks / (TP 4 x PP 4)"
  bool known = true;       // false: `value` is no value of a configuration
  std::string shown = {};  // for people where it says more than `value`; "": the value
};

/// A training job as launch scripts and configurations describe it.
struct TrainingJob {
  std::string framework, kind = "config", launcher;
  std::vector<std::string> files;
  std::vector<ForeignSetting> settings;              // in order: the last one of a key counts
  std::map<std::string, Given, std::less<>> values;  // by the names of configurations: "model.layers", "sharding"
  NameValues environment;                            // that reaches the ranks
  std::vector<std::string> problems, cannot, refused, notes;
  std::string headline = {};                     // what is most telling; "": the shape of the job
  std::vector<std::string> more_arguments = {};  // why arguments of the program are not known
  bool lacks_files = false;                      // it names configurations that were not given
  std::vector<std::string> typed = {};           // what the person filled, as options of `read`

  void set(std::string_view name, std::string value, std::string origin, std::string shown = "") {
    values[std::string(name)] = {std::move(value), std::move(origin), true, std::move(shown)};
  }
  void set(std::string_view name, std::int64_t value, std::string origin, std::string shown = "") {
    set(name, std::to_string(value), std::move(origin), std::move(shown));
  }
  /// Sets what is not there yet.
  template <class Text>
  void otherwise(std::string_view name, Text value, std::string origin) {
    if (!has(name)) set(name, std::move(value), std::move(origin));
  }
  void set_unknown(std::string_view name, std::string text, std::string origin) {
    values[std::string(name)] = {std::move(text), std::move(origin), false, ""};
  }
  bool has(std::string_view name) const { return values.contains(name); }
  /// "" where it is not known.
  std::string text(std::string_view name) const;
  std::optional<std::int64_t> number(std::string_view name) const;
  std::int64_t number_or(std::string_view name, std::int64_t otherwise) const {
    return number(name).value_or(otherwise);
  }
  /// Of "tensor", "pipeline" or "context" parallelism: 1 where it is not known.
  std::int64_t degree(std::string_view axis) const;
  /// The last setting of this key; nullptr if there is none.
  const ForeignSetting* find(std::string_view key) const;
  std::string theirs(std::string_view key) const;
  std::optional<std::int64_t> their_number(std::string_view key) const { return number_in<std::int64_t>(theirs(key)); }
  bool is_on(std::string_view key) const;
  /// Whether it is a job of this framework, or has settings of it.
  bool uses(std::string_view name) const;
  void note(std::string text);
};

/// Takes files of one job: scripts, configurations of frameworks and models, here-documents in scripts.
class JobReader {
 public:
  /// Whether a text, of which `head` is the beginning, is one.
  static bool recognises(std::string_view head);
  void file(std::string name, std::string text) { files_.emplace_back(std::move(name), std::move(text)); }
  /// A text of no known kind: it is read where a script reads it along, else not_read() has `why` not.
  void unknown(const std::string& name, std::string text, std::string why);
  const std::vector<std::string>& not_read() const { return not_read_; }
  /// Takes a hostfile, from which its launcher may take the ranks.
  void hosts(const Answer& hostfile) { hosts_ = hostfile.facts; }
  bool any() const { return !files_.empty(); }
  /// The job that these files and a training log (nullptr: none) describe together. Where they differ, the log is
  /// right: it is what ran. Throws Error for files that cannot be followed.
  TrainingJob finish(const Gaps& gaps, const TrainingLog* log);

 private:
  NameValues follow_scripts(TrainingJob& job);
  std::string take_documents(const NameValues& documents, const TrainingLog* log, TrainingJob& job) const;
  void count_hosts(TrainingJob& job) const;

  NameValues files_, unknown_;
  std::vector<std::string> not_read_;  // of each that is unknown
  decltype(Answer::facts) hosts_;
};

// ---- its steps, each in a file of its own

/// Whether a text is a shell script that starts something.
bool is_launch_script(std::string_view text);
/// Whether a text, of which this is the beginning, is a configuration of harness.
bool is_own_configuration(std::string_view text);
/// Whether it is one of nanoGPT's: assignments of Python.
bool is_assignments(std::string_view text);

/// The options of a launcher, before its program: "--nproc_per_node 8", "-np=8". - and _ in names are the same.
class LauncherOptions {
 public:
  explicit LauncherOptions(std::vector<std::string> words) : words_(std::move(words)) {}
  /// The last value of one of these names; nothing where none is given.
  std::optional<std::string> value(std::initializer_list<std::string_view> names) const;
  bool has(std::string_view name) const;
  /// The words behind each `name`.
  std::vector<std::string> all(std::string_view name) const;

 private:
  std::vector<std::string> words_;
};

/// A number of ranks, nodes or GPUs; nothing for any other text.
std::optional<std::int64_t> count_of(const std::optional<std::string>& text);
/// The variables that Slurm sets in a job by the lines "#SBATCH --nodes=8" of its script.
std::map<std::string, std::string> variables_of_batch(std::string_view script);
/// Adds the settings of a program's command line, its name first: "--key value …", "--key=value", "key=value", files.
void take_arguments(const std::vector<std::string>& words, const Shell& shell, const std::string& origin,
                    TrainingJob& job);
/// Follows a script to the program that it starts: ranks, environment, and the program's settings (launch.cpp).
/// `documents`: takes texts that the script writes into files.
void read_script(const std::string& name, const std::string& text, const NameValues& files, TrainingJob& job,
                 NameValues& documents);
/// The settings of a configuration in TOML, JSON, YAML or assignments of Python, flat: "training.seq_len"
/// (job_documents.cpp).
/// Throws Error for a text that is none.
std::vector<ForeignSetting> settings_of_document(const std::string& name, const std::string& text);
/// The framework whose keys these are; "": none that is known.
std::string framework_of_document(const std::vector<ForeignSetting>& settings);
/// Sets in a log what it does not say of its job: sizes, precision.
void complete(TrainingLog& log, const TrainingJob& job);
/// Writes the settings of frameworks that name Megatron-LM's fields as its flags (job_keys.cpp).
void prepare_settings(TrainingJob& job);
/// Says in our names what the settings say (job_keys.cpp).
void translate(TrainingJob& job);
/// Adds what follows by a framework's own rules and defaults (job_rules.cpp, hugging_face_rules.cpp,
/// megatron_rules.cpp).
void conclude_framework(TrainingJob& job);
void conclude_hugging_face(TrainingJob& job);
void conclude_megatron(TrainingJob& job);
/// Notes that weights are divided among `shard` ranks, and that there are `replicate` such groups.
void hybrid_sharding(TrainingJob& job, std::int64_t shard, std::int64_t replicate, const std::string& origin);
/// Sizes of a model that is known by its name; false: it is not, which is noted.
bool take_model(TrainingJob& job, const std::string& name, const std::string& origin);
/// Sets what a job does not say: "recompute=none precision=bf16", of its model "layers=12 biases=true".
void take_defaults(TrainingJob& job, std::string_view values, const std::string& from, std::string_view section = "");
inline void model_defaults(TrainingJob& job, std::string_view values, const std::string& from) {
  take_defaults(job, values, from, "model.");
}
/// Replicas, batch and accumulation, which follow from each other, and what does not go together (job_shape.cpp).
void conclude_shape(TrainingJob& job);
/// Whether it divides gradients or weights among the replicas of a pipeline, which harness does not.
bool is_sharded_pipeline(const TrainingJob& job);
/// The answer; its configuration is one of harness where the job is known well enough (job_answer.cpp).
Answer answer_of(const TrainingJob& job);
/// The calibration whose predictions are of this job's kind; "": none in particular.
std::string calibration_of(const TrainingJob& job);
/// The model as far as it is known: 0 for what is not.
config::Model model_of(const TrainingJob& job);

/// A fact of a job: its key in answers and in TrainingLog::sizes, and its name among a job's values.
struct JobFact {
  std::string key, name;
  bool always = false;  // "unknown" where it is not there
};
const std::vector<JobFact>& job_facts();

/// A key of a job that `--set` takes.
struct GapKey {
  std::string key, name;  // "layers" is "model.layers" among a job's values
  bool number = false;    // a whole number above zero
};
const std::vector<GapKey>& gap_keys();

}  // namespace harness::evidence
