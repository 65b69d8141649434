#include "evidence/shell.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "evidence/lines.h"

namespace harness::evidence {
namespace {

using ShellKind = ShellCommand::Kind;
using Status = Shell::Status;
using Text = std::string_view;

// The name of "NAME=value", "NAME+=value", "NAME[i]=value"; "": it is none of them.
Text assigned_name(Text word) {
  Text name = word.substr(0, std::min(word.find('='), word.size()));
  if (name.size() == word.size()) return {};
  if (name.ends_with('+')) name.remove_suffix(1);
  if (name.ends_with(']')) name = name.substr(0, name.find('['));
  return is_name(name) ? name : Text();
}

// The words that two branches agree on hold; all that follows is not known.
std::string common(const std::string& a, const std::string& b, const std::string& unknown) {
  std::size_t same = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  const auto ends_word = [&](const std::string& text) { return same == text.size() || text[same] == ' '; };
  if (!(ends_word(a) && ends_word(b))) same = a.rfind(' ', same == 0 ? 0 : same - 1) + 1;
  if (same == 0) return unknown;
  return a.substr(0, same) + " " + unknown;
}

}  // namespace

void Shell::refuse(std::int64_t line, const std::string& what) {
  std::string text = fmt::format("line {}: {}", line, what);
  constexpr std::size_t most = 20;
  if (refused_.size() < most && std::ranges::find(refused_, text) == refused_.end())
    refused_.push_back(std::move(text));
}

void Shell::spend(std::size_t bytes) {
  constexpr std::size_t most = 64u << 20;
  spent_ += bytes + 1;
  if (spent_ > most) fail("line {}: its texts grow beyond what is followed", line_);
}

const Shell::Variable* Shell::find(Text name) const {
  const auto found = state_.variables.find(name);
  return found == state_.variables.end() ? nullptr : &found->second;
}

void Shell::set(const std::string& name, const std::string& value, bool exported) {
  Variable& variable = state_.variables[name];
  variable.items = {value};
  variable.array = false;
  variable.order = ++assignments_;
  variable.exported = variable.exported || exported;
}

void Shell::run(Text script, std::int64_t first_line) {
  scripts_.push_back(std::make_unique<ShellCommand>(parse_shell(script, first_line)));
  run(*scripts_.back());
  state_.ended = false;
}

// A script that stops before it starts anything has checked what its user fills in: the user passes the check.
void Shell::pass_check(std::int64_t line) {
  if (!state_.ended || !failed_ || !launches_.empty()) return;
  state_.ended = failed_ = false;
  refuse(line, "it stops here unless its settings are filled in");
}

// Takes what differs from another outcome as unknown.
void Shell::merge(const State& other, std::int64_t line) {
  if (other.ended) return;
  if (state_.ended) {
    state_ = other;
    return;
  }
  for (const auto& [name, theirs] : other.variables) state_.variables.try_emplace(name);
  for (auto& [name, ours] : state_.variables) {
    const auto found = other.variables.find(name);
    const Variable none;
    const Variable& theirs = found == other.variables.end() ? none : found->second;
    spend(ours.items.size() + theirs.items.size());
    if (ours.items == theirs.items && ours.array == theirs.array) continue;
    const std::string mark = unknown(fmt::format("line {} decides {}", line, name));
    if (ours.array && theirs.array) {
      const auto same = std::ranges::mismatch(ours.items, theirs.items).in1 - ours.items.begin();
      ours.items.resize(static_cast<std::size_t>(same));
      ours.items.push_back(mark);
    } else if (ours.items.size() == 1 && theirs.items.size() == 1) {
      ours.items = {common(ours.items[0], theirs.items[0], mark)};
    } else {
      ours.items = {mark};
    }
    ours.exported = ours.exported || theirs.exported;
  }
}

Status Shell::run(const ShellCommand& command) {
  if (state_.ended) return Status::yes;
  line_ = command.line;
  spend(16);
  switch (command.kind) {
    case ShellKind::simple:
      return run_simple(command);
    case ShellKind::pipeline:
    case ShellKind::sequence: {
      Status last = Status::yes;
      for (const ShellCommand& child : command.children) last = run(child);
      if (!command.redirects.empty()) keep_document(command, {"cat"});
      return command.kind == ShellKind::pipeline && last != Status::yes ? Status::unknown : last;
    }
    case ShellKind::chain: {
      Status status = run(command.children.front());
      for (std::size_t i = 1; i < command.children.size(); ++i) {
        const Status needed = command.words[i - 1] == "&&" ? Status::yes : Status::no;
        if (status == needed) {
          status = run(command.children[i]);
          pass_check(command.line);
        } else if (status == Status::unknown) {
          const State skipped = state_;
          for (const auto& [name, variable] : skipped.variables) spend(variable.items.size());
          run(command.children[i]);
          merge(skipped, command.line);
        }
      }
      return status;
    }
    case ShellKind::negation:
      return inverse(run(command.children.front()));
    case ShellKind::condition: {
      std::vector<std::string> words;
      for (const std::string& word : command.words) words.push_back(text_of(word));
      return test(std::move(words), true);
    }
    case ShellKind::arithmetic: {
      const auto value = command.words.empty() ? std::nullopt : arithmetic(command.words.front());
      return value ? status_of(*value != 0) : Status::unknown;
    }
    case ShellKind::choice:
      return run_choice(command, 0);
    case ShellKind::cases:
      return run_cases(command);
    case ShellKind::each:
      run_each(command);
      return Status::yes;
    case ShellKind::repetition:
      run_repetition(command);
      return Status::yes;
    case ShellKind::function:
      functions_[command.words.front()] = &command.children.front();
      return Status::yes;
  }
  return Status::unknown;
}

Status Shell::run_choice(const ShellCommand& command, std::size_t part) {
  const auto& parts = command.children;
  if (part >= parts.size()) return Status::yes;
  if (part + 1 == parts.size()) return run(parts[part]);  // else
  const Status holds = run(parts[part]);
  if (holds == Status::yes) {
    const Status status = run(parts[part + 1]);
    pass_check(parts[part].line);
    return status;
  }
  if (holds == Status::no) return run_choice(command, part + 2);
  State before = state_;
  for (const auto& [name, variable] : before.variables) spend(16 * variable.items.size());
  run(parts[part + 1]);
  std::swap(state_, before);
  run_choice(command, part + 2);
  merge(before, parts[part].line);
  return Status::yes;
}

Status Shell::run_cases(const ShellCommand& command) {
  const std::string text = text_of(command.words.front());
  std::optional<State> outcome;
  const State before = state_;
  for (std::size_t i = 0; i < command.children.size(); ++i) {
    bool matches = is_unknown(text);
    for (Text pattern : split(command.words[i + 1], '|')) {
      matches = matches || matches_pattern(text, text_of(trim(pattern)));
    }
    if (!matches) continue;
    if (!is_unknown(text)) return run(command.children[i]);
    for (const auto& [name, variable] : before.variables) spend(16 * variable.items.size());
    state_ = before;
    run(command.children[i]);
    if (outcome) merge(*outcome, command.line);
    outcome = state_;
  }
  return Status::yes;
}

void Shell::run_each(const ShellCommand& command) {
  const std::vector<std::string> items = words_of(command.words, 1);
  const std::size_t before = launches_.size();
  if (items.empty() && command.words.size() > 1) return;
  const bool one = items.size() == 1 && !is_unknown(items.front());
  const std::string name = command.words.front();
  if (is_name(name))
    set(name, one ? items.front() : unknown(fmt::format("line {}: a loop changes {}", command.line, name)), false);
  run(command.children.front());
  if (launches_.size() == before || one) return;
  const bool counted = std::ranges::none_of(items, is_unknown) && !items.empty();
  refuse(command.line, counted ? fmt::format("a loop over {} launches", items.size()) : "a loop around a launch");
}

void Shell::run_repetition(const ShellCommand& command) {
  const std::size_t before = launches_.size();
  const Status condition = run(command.children.front());
  const Status runs = command.inverted ? inverse(condition) : condition;
  if (runs == Status::no) return;
  // "while [ $# -gt 0 ]" and getopts read arguments, of which there are none here.
  const auto& first = command.children.front().children;
  const bool of_arguments = !first.empty() && std::ranges::any_of(first.front().words, [](Text word) {
    return word == "getopts" || word.find("$#") != Text::npos || word.find("$1") != Text::npos ||
           word.find("${1") != Text::npos;
  });
  if (of_arguments && runs == Status::unknown) return;
  const State skipped = state_;
  run(command.children.back());
  if (runs == Status::unknown) merge(skipped, command.line);
  if (launches_.size() > before) refuse(command.line, "a loop around a launch");
}

// Takes "NAME=value" and its kin; false for any other word.
bool Shell::assign(Text word, bool exported) {
  const Text name = assigned_name(word);
  if (name.empty()) return false;
  const std::size_t equals = word.find('=');
  const bool adds = word[equals - 1] == '+';
  const Text left = word.substr(0, equals - (adds ? 1 : 0));
  Text raw = word.substr(equals + 1);
  assigning_ = std::string(name);
  Variable value;
  if (raw.starts_with('(')) {
    raw.remove_prefix(1);
    if (raw.ends_with(')')) raw.remove_suffix(1);
    value.array = true;
    value.items = words_of(shell_list(raw));
  } else {
    value.items = {text_of(raw)};
  }
  assigning_.clear();
  Variable& variable = state_.variables[std::string(name)];
  value.exported = variable.exported || exported;
  if (left.ends_with(']')) value.items = {unknown(fmt::format("line {}: {}", line_, left))};
  if (!adds) {
    variable = std::move(value);
  } else if (value.array) {
    variable.array = true;
    std::ranges::move(value.items, std::back_inserter(variable.items));
  } else {
    if (variable.items.empty()) variable.items.emplace_back();
    spend(variable.items.front().size());
    variable.items.front() += value.items.front();
  }
  variable.order = ++assignments_;
  variable.exported = variable.exported || exported;
  return true;
}

Status Shell::run_simple(const ShellCommand& command) {
  std::size_t first = 0;
  while (first < command.words.size() && !assigned_name(command.words[first]).empty()) ++first;
  if (first == command.words.size()) {
    for (const std::string& word : command.words) assign(word, false);
    return Status::yes;
  }
  NameValues before_command;
  for (std::size_t i = 0; i < first; ++i) {
    const Text word = command.words[i];
    before_command.emplace_back(assigned_name(word), text_of(word.substr(word.find('=') + 1)));
  }
  std::vector<std::string> words;
  static constexpr std::array<Text, 6> declaring{"export", "declare", "typeset", "readonly", "local", "alias"};
  if (std::ranges::find(declaring, command.words[first]) != declaring.end()) {
    bool exported = command.words[first] == "export";
    for (std::size_t i = first + 1; i < command.words.size(); ++i) {
      const std::string& word = command.words[i];
      if (word.starts_with('-')) {
        exported = (exported && word != "-n") || word.find('x') != Text::npos;
      } else if (!assign(word, exported) && exported && is_name(word)) {
        if (const auto found = state_.variables.find(word); found != state_.variables.end())
          found->second.exported = true;
      }
    }
    return Status::yes;
  }
  words = words_of(command.words, first);
  if (words.empty()) return Status::yes;
  keep_document(command, words);
  bool known = true;
  const Status status = run_builtin(command, words, known);
  if (known) return status;
  constexpr std::size_t most = 1000;
  if (!may_start(words) || launches_.size() >= most) return Status::unknown;
  ShellLaunch launch{command.line, std::move(words), {}};
  std::vector<std::pair<std::int64_t, std::string>> order;
  for (const auto& [name, variable] : state_.variables) {
    if (variable.exported && !variable.items.empty()) order.emplace_back(variable.order, name);
  }
  std::ranges::sort(order);
  for (const auto& [line, name] : order) launch.environment.emplace_back(name, find(name)->items.front());
  for (auto& [name, value] : before_command) {
    std::erase_if(launch.environment, [&, &n = name](const auto& entry) { return entry.first == n; });
    launch.environment.emplace_back(name, value);
  }
  launches_.push_back(std::move(launch));
  return Status::yes;
}

}  // namespace harness::evidence
