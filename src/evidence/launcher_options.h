#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace harness::evidence {

class Shell;
struct TrainingJob;

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

}  // namespace harness::evidence
