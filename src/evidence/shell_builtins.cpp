#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "evidence/lines.h"
#include "evidence/shell.h"

// Commands of a script that a shell runs itself, and files that it reads.

namespace harness::evidence {
namespace {

using Status = Shell::Status;
using Text = std::string_view;

// Commands that start none and change nothing of what counts.
constexpr std::array<Text, 32> passed_over{"cd",    "mkdir", "echo",  "printf", "module", "ulimit", "conda", "pip",
                                           "date",  "trap",  "shopt", "rm",     "cp",     "mv",     "ls",    "cat",
                                           "tee",   "sleep", "touch", "wait",   "pushd",  "popd",   "kill",  "ln",
                                           "chmod", "grep",  "sed",   "awk",    "ml",     "spack",  "hash",  "sysctl"};

}  // namespace

bool may_start(const std::vector<std::string>& words) {
  static constexpr std::array<Text, 12> launchers{"torchrun", "srun",   "mpirun", "mpiexec", "deepspeed", "accelerate",
                                                  "composer", "sbatch", "prun",   "jsrun",   "flux",      "ray"};
  return std::ranges::any_of(words, [](Text word) {
    const std::string name = file_name(word);
    return std::ranges::find(launchers, name) != launchers.end() || name.starts_with("python") || name.ends_with(".py");
  });
}

// "cat > name <<EOF", "tee name <<EOF": a further input.
void Shell::keep_document(const ShellCommand& command, const std::vector<std::string>& words) {
  const ShellRedirect *text = nullptr, *file = nullptr;
  for (const ShellRedirect& redirect : command.redirects) {
    if (redirect.here_document) text = &redirect;
    if (redirect.writes) file = &redirect;
  }
  if (text == nullptr) return;
  const std::string program = words.empty() ? "" : file_name(words.front());
  if (program == "sbatch" || program == "qsub" || program == "bash" || program == "sh") {
    documents_[fmt::format("{} of line {}", program, command.line)] =
        text->expands ? document_of(text->target) : text->target;
    return;
  }
  if (program != "cat" && program != "tee") {
    if (program.starts_with("python")) refuse(command.line, "a program in another language");
    return;
  }
  std::string name = words.size() > 1 ? words.back() : "";
  if (file != nullptr) name = text_of(file->target);
  if (name.empty()) return;
  documents_[file_name(name)] = text->expands ? document_of(text->target) : text->target;
}

// Another file that was given: "source env.sh", "bash train.sh 8".
Status Shell::run_file(const std::string& name, const std::vector<std::string>& words, std::size_t first) {
  const auto found = others_.find(file_name(name));
  constexpr int deepest = 16;
  if (found == others_.end() || depth_ >= deepest) return Status::unknown;
  read_along_.push_back(found->first);
  scripts_.push_back(std::make_unique<ShellCommand>(parse_shell(found->second)));
  auto outer =
      std::exchange(state_.arguments, std::vector(words.begin() + static_cast<std::ptrdiff_t>(first), words.end()));
  if (words.size() == first) state_.arguments = std::nullopt;
  ++depth_;
  run(*scripts_.back());
  --depth_;
  state_.arguments = std::move(outer);
  state_.ended = false;
  return Status::yes;
}

Status Shell::run_builtin(const ShellCommand& command, const std::vector<std::string>& words, bool& known) {
  const std::string name = file_name(words.front());
  if (const auto function = functions_.find(name); function != functions_.end()) {
    constexpr int deepest = 16;
    if (depth_ >= deepest) return Status::unknown;
    ++depth_;
    auto outer = std::exchange(state_.arguments, std::vector(words.begin() + 1, words.end()));
    run(*function->second);
    state_.arguments = std::move(outer);
    state_.ended = false;
    --depth_;
    return Status::yes;
  }
  if (name == "[" || name == "test") {
    std::vector<std::string> rest(words.begin() + 1, words.end());
    if (name == "[" && !rest.empty() && rest.back() == "]") rest.pop_back();
    return test(std::move(rest), false);
  }
  if (name == "true" || name == ":" || name == "false") return status_of(name != "false");
  if (name == "exit" || name == "return") {
    state_.ended = true;
    failed_ = name == "exit" && words.size() > 1 && words[1] != "0";
    return Status::yes;
  }
  if (name == "shift") {
    if (auto& arguments = state_.arguments; arguments && !arguments->empty()) arguments->erase(arguments->begin());
    return Status::yes;
  }
  if (name == "set") {
    const auto dashes = std::ranges::find(words, "--");
    if (dashes != words.end()) state_.arguments = std::vector(dashes + 1, words.end());
    return Status::yes;
  }
  if (name == "unset") {
    for (const std::string& word : words) state_.variables.erase(word);
    return Status::yes;
  }
  if (name == "source" || words.front() == ".") {
    if (words.size() > 1 && run_file(words[1], words, 2) == Status::yes) return Status::yes;
    refuse(command.line, words.size() > 1 && !is_unknown(words[1])
                             ? fmt::format("source (another file, {}: give it as well)", file_name(words[1]))
                             : "source (another file)");
    return Status::unknown;
  }
  if (name == "eval") {
    refuse(command.line, "eval: its text is followed as far as it is known");
    constexpr int deepest = 16;
    if (depth_ >= deepest) return Status::unknown;
    ++depth_;
    run(join(std::vector(words.begin() + 1, words.end()), " "), command.line);
    --depth_;
    return Status::yes;
  }
  if (name == "read" || name == "mapfile" || name == "readarray" || name == "let") {
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::string variable = words[i].substr(0, name_length(words[i]));
      if (!variable.empty())
        set(variable, unknown(fmt::format("line {}: {} sets {}", command.line, name, variable)), false);
    }
    return Status::unknown;
  }
  const auto script = std::ranges::find_if(words, [&](Text word) { return others_.contains(file_name(word)); });
  if (script != words.end() && (script == words.begin() || !may_start({*script})) &&
      run_file(*script, words, static_cast<std::size_t>(script - words.begin()) + 1) == Status::yes) {
    known = !may_start(words);
    return Status::yes;
  }
  known = std::ranges::find(passed_over, name) != passed_over.end();
  return Status::yes;
}

}  // namespace harness::evidence
