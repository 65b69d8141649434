#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "evidence/input.h"
#include "evidence/shell.h"

// Simple commands: assignments, tests and other builtins, launches, and files that the shell sources.

namespace harness::evidence {
namespace {

using Status = Shell::Status;
// Commands that launch nothing and change nothing relevant.
constexpr std::string_view passed_over =
    "cd|mkdir|echo|printf|module|ulimit|conda|pip|date|trap|shopt|rm|cp|mv|ls|cat|tee|sleep|touch|wait|pushd|popd|kill|"
    "ln|chmod|grep|sed|awk|ml|spack|hash|sysctl";
// Those among them that scripts ask a question with: their status depends on the machine.
constexpr std::string_view asking = "ls|kill|grep|hash";

// Returns whether a command may start a program on other ranks or in Python.
bool may_start(const std::vector<std::string>& words) {
  static constexpr std::string_view launchers =
      "torchrun|srun|mpirun|mpiexec|deepspeed|accelerate|accelerate-launch|composer|sbatch|prun|jsrun|flux|ray|swift|"
      "llamafactory-cli|axolotl";
  return std::ranges::any_of(words, [](Text word) {
    const std::string name = file_name(word);
    return is_one_of(launchers, name) || name.starts_with("python") || name.ends_with(".py");
  });
}

}  // namespace

// "cat <<EOF": its text.
std::optional<std::string> Shell::output_of_cat(Text command) {
  ShellReader reader(command);
  std::vector<ShellRedirect> inputs;
  if (!reader.eat_word("cat")) return std::nullopt;
  for (reader.skip_blanks(); reader.redirect(inputs);) reader.skip_blanks();
  reader.skip_lines();
  if (!reader.at_end() || inputs.size() != 1 || !inputs.front().here_document) return std::nullopt;
  return std::string(trim(text_of(inputs.front())));
}

// "cat > name <<EOF", "tee name <<EOF", "echo TEXT > name.sh": adds an input file.
void Shell::keep_document(const std::vector<ShellRedirect>& redirects, const std::vector<std::string>& words) {
  const ShellRedirect *text = nullptr, *file = nullptr;
  for (const ShellRedirect& redirect : redirects) {
    if (redirect.here_document) text = &redirect;
    if (redirect.writes) file = &redirect;
  }
  const std::string program = words.empty() ? "" : file_name(words.front());
  const bool prints = text == nullptr && program == "echo" && file != nullptr;
  if (text == nullptr && !prints) return;
  std::string name;
  if (is_one_of("sbatch|qsub|bash|sh", program)) {
    name = fmt::format("{} of line {}", program, line_);
  } else if (is_one_of("cat|tee|echo", program)) {
    if (words.size() > 1) name = words.back();
    if (file != nullptr) name = text_of(file->target);
  } else if (program.starts_with("python")) {
    refuse(line_, "a program in another language");
  }
  if (name.empty() || (prints && !name.ends_with(".sh"))) return;
  std::string& kept = documents_[file_name(name)];
  if (file == nullptr || !file->appends) kept.clear();
  kept += prints ? join(std::vector(words.begin() + 1, words.end()), " ") + "\n" : text_of(*text);
  if (name.ends_with(".sh")) others_[file_name(name)] = kept;
}

// Runs a function or a given file with its own arguments. Returns its status; nothing also if it is nested too deeply.
Status Shell::run_inside(const ShellReader& from, Status (Shell::*part)(),
                         std::optional<std::vector<std::string>> arguments) {
  constexpr int deepest = 16, most_commands = 256;
  if (depth_ >= deepest || commands_ > most_commands) return std::nullopt;
  ++depth_;
  auto outer = std::exchange(state_.arguments, std::move(arguments));
  const std::int64_t maybe_ended = maybe_ends_;
  const Status last = follow(from, part), status = state_.ended ? returned_ : last;
  state_.arguments = std::move(outer);
  state_.ended = state_.exited;
  --depth_;
  return maybe_ends_ == maybe_ended ? status : std::nullopt;
}

bool Shell::run_file(std::span<const std::string> command) {
  const auto found = others_.find(file_name(command.front()));
  if (found == others_.end()) return false;
  std::optional<std::vector<std::string>> arguments;
  if (command.size() > 1) arguments.emplace(command.begin() + 1, command.end());
  run_inside(ShellReader(found->second), &Shell::whole_script, std::move(arguments));
  return true;
}

bool Shell::in_process(const NameValues& environment, const std::function<bool()>& follow_it) {
  State outside = remembered(1);
  std::erase_if(state_.variables, [](const auto& variable) { return !variable.first.starts_with("SLURM_"); });
  state_.exports_all = false;
  for (const auto& [variable, value] : environment) set(variable, value, true);
  auto locals = std::exchange(locals_, {});
  const bool followed = follow_it();
  locals_ = std::move(locals);
  state_ = std::move(outside);
  return followed;
}

// Returns the variables that reach a process, in the order of their assignment. `before`: set in front of its command.
NameValues Shell::exported(const NameValues& before) const {
  std::vector<std::pair<std::int64_t, std::string>> order;
  for (const auto& [name, variable] : state_.variables) {
    if (variable.exported && !variable.items.empty()) order.emplace_back(variable.order, name);
  }
  std::ranges::sort(order);
  NameValues values;
  for (const auto& [when, name] : order) values.emplace_back(name, find(name)->items.front());
  for (const auto& [name, value] : before) set_last(values, name, value);
  return values;
}

// Gives a variable back when the function returns.
void Shell::hide(const std::string& name) {
  const Variable* outside = find(name);
  locals_.back().try_emplace(name, outside == nullptr ? std::nullopt : std::optional(*outside));
}

// `before`: assignments in front of the command.
Status Shell::run_builtin(const std::vector<std::string>& words, const NameValues& before, bool& known) {
  const std::string name = file_name(words.front());
  const std::vector<std::string> arguments(words.begin() + 1, words.end());
  if (const auto function = functions_.find(name); function != functions_.end()) {
    locals_.emplace_back();
    for (const auto& [variable, value] : before) {
      hide(variable);
      set(variable, value, true);
    }
    const Status status = run_inside(function->second, &Shell::command, arguments);
    for (auto& [variable, outside] : locals_.back()) {
      state_.variables.erase(variable);
      if (outside) state_.variables.emplace(variable, std::move(*outside));
    }
    locals_.pop_back();
    return status;
  }
  if (name == "[" || name == "test") {
    std::vector<std::string> rest = arguments;
    if (name == "[" && !rest.empty() && rest.back() == "]") rest.pop_back();
    return test(std::move(rest), false);
  }
  if (name == "true" || name == ":" || name == "false") return name != "false";
  if (name == "exit" || name == "return") {
    state_.ended = true;
    state_.exited = name == "exit";
    failed_ = state_.exited && words.size() > 1 && words[1] != "0";
    returned_ = words.size() > 1 && !is_unknown(words[1]) ? Status(words[1] == "0") : std::nullopt;
    return true;
  }
  if (name == "shift" && state_.arguments) {
    auto& given = *state_.arguments;
    const std::size_t n = words.size() > 1 ? number_in<std::size_t>(words[1]).value_or(1) : 1;
    given.erase(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(std::min(n, given.size())));
  }
  if (name == "set") {
    if (words.size() > 1 && (words[1] == "-a" || words[1] == "+a")) state_.exports_all = words[1] == "-a";
    if (const auto dashes = std::ranges::find(words, "--"); dashes != words.end())
      state_.arguments = std::vector(dashes + 1, words.end());
  }
  if (name == "shift" || name == "set") return true;
  if (name == "unset") {
    for (const std::string& word : words) state_.variables.erase(word);
    return true;
  }
  if (name == "source" || words.front() == ".") {
    if (words.size() > 1 && run_file(std::span(words).subspan(1))) return true;
    refuse(line_, words.size() > 1 && !is_unknown(words[1])
                      ? fmt::format("source (another file, {}: give it as well)", file_name(words[1]))
                      : "source (another file)");
    return std::nullopt;
  }
  if (name == "eval") {
    refuse(line_, "eval: its text is followed as far as it is known");
    return run_inside(ShellReader(scripts_.emplace_back(join(arguments, " ")), line_), &Shell::whole_script,
                      state_.arguments);
  }
  if (name == "let") {
    Status last;
    for (const std::string& word : arguments) last = compute(word);
    return last;
  }
  if (name == "read" || name == "mapfile" || name == "readarray") {
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::string variable = words[i].substr(0, name_length(words[i]));
      if (!variable.empty()) set(variable, unknown(fmt::format("line {}: {} sets {}", line_, name, variable)), false);
    }
    return std::nullopt;
  }
  known = is_one_of(passed_over, name);
  if (is_one_of(asking, name)) return std::nullopt;
  const auto script = std::ranges::find_if(words, [&](Text word) { return others_.contains(file_name(word)); });
  // A command that runs on many ranks is treated as a launch.
  if (script == words.end() || known || (name != "sbatch" && may_start({words.begin(), script}))) return true;
  known = in_process(exported(before), [&] { return run_file({script, words.end()}); });
  return true;
}

Status Shell::simple() {
  std::vector<std::string> raw;
  std::vector<ShellRedirect> redirects;
  const std::size_t begin = reader_.place();
  for (reader_.skip_blanks(); !reader_.at_end(); reader_.skip_blanks()) {
    if (reader_.redirect(redirects)) continue;
    std::string next = reader_.word();
    if (next.empty() && reader_.at("(") && raw.size() == 1) return function(raw.front());
    if (next.empty()) break;
    raw.push_back(std::move(next));
  }
  spend(reader_.place() - begin);
  return follows() ? run_simple(raw, redirects) : true;
}

// Executes "NAME=value" and similar assignments; returns false for any other word.
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
    value.items = words_of(ShellReader(raw).list());
  } else {
    value.items = {text_of(raw)};
  }
  assigning_.clear();
  Variable& variable = state_.variables[std::string(name)];
  exported = exported || variable.exported || state_.exports_all;
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
  variable.exported = exported;
  return true;
}

Status Shell::run_simple(const std::vector<std::string>& raw, const std::vector<ShellRedirect>& redirects) {
  const std::int64_t line = line_;
  std::size_t first = 0;
  while (first < raw.size() && !assigned_name(raw[first]).empty()) ++first;
  if (first == raw.size()) {
    for (const std::string& word : raw) assign(word, false);
    return true;
  }
  NameValues before_command;
  for (std::size_t i = 0; i < first; ++i) {
    const Text word = raw[i];
    before_command.emplace_back(assigned_name(word), text_of(word.substr(word.find('=') + 1)));
  }
  std::vector<std::string> words;
  if (is_one_of("export|declare|typeset|readonly|local|alias", raw[first])) {
    bool exported = raw[first] == "export", kept = false;  // kept: hidden from programs by export -n
    bool of_function = is_one_of("local|declare|typeset", raw[first]) && !locals_.empty();
    for (std::size_t i = first + 1; i < raw.size(); ++i) {
      const std::string& word = raw[i];
      if (word.starts_with('-')) {
        kept = exported && word == "-n";
        exported = (exported && !kept) || word.find('x') != Text::npos;
        of_function = of_function && word.find('g') == Text::npos;  // declare -g
        continue;
      }
      if (of_function) hide(word.substr(0, name_length(word)));
      const bool assigned = assign(word, exported);
      const auto found = state_.variables.find(assigned ? assigned_name(word) : Text(word));
      if (found != state_.variables.end() && (exported || kept)) found->second.exported = exported;
    }
    return true;
  }
  words = words_of(raw, first);
  if (words.empty()) return true;
  keep_document(redirects, words);
  if (words.front() == "read" && read_names(words, redirects, before_command)) return true;
  bool known = true;
  const Status status = run_builtin(words, before_command, known);
  if (known) return status;
  constexpr std::size_t most = 1000;
  if (!(may_start(words) || words.front() == "megatron") || launches_.size() >= most) return std::nullopt;
  launches_.push_back({line, std::move(words), exported(before_command)});
  return true;
}

// Computes "N = 4", "N *= 2", "N++" or a value. Returns nothing if it is not known.
std::optional<std::int64_t> Shell::computed(Text text) {
  text = trim(text);
  for (const Text step : {"++", "--"}) {
    const std::string add = fmt::format("{}= 1", step[0]);
    if (text.starts_with(step) && is_name(trim(text.substr(2))))
      return computed(fmt::format("{} {}", text.substr(2), add));
    const Text counted = trim(text.substr(0, text.size() - std::min<std::size_t>(text.size(), 2)));
    if (!text.ends_with(step) || !is_name(counted)) continue;
    const auto before = arithmetic(counted);
    computed(fmt::format("{} {}", counted, add));
    return before;
  }
  const Text name = text.substr(0, name_length(text));
  const std::size_t equals = std::min(text.find_first_not_of(" \t+-*/%", name.size()), text.size());
  const bool assigns = !name.empty() && text.substr(equals).starts_with('=') && text.substr(equals, 2) != "==";
  const Text right = assigns ? text.substr(equals + 1) : text,
             op = trim(text.substr(name.size(), equals - name.size()));
  const std::optional<std::int64_t> value =
      arithmetic(assigns && !op.empty() ? fmt::format("{} {} ({})", name, op, right) : std::string(right));
  if (assigns) set(std::string(name), value ? std::to_string(*value) : unknown_of(right), false);
  return value;
}

Status Shell::compute(Text text) {
  const auto value = computed(text);
  return value ? Status(*value != 0) : std::nullopt;
}

// Evaluates test, [ ] and [[ ]] without looking at files.
Status Shell::test(std::vector<std::string> words, bool double_brackets) {
  constexpr std::size_t most = 64;
  if (words.empty()) return false;
  if (words.size() > most) return std::nullopt;
  for (const Text either : {"||", "-o", "&&", "-a"}) {
    const auto at = std::ranges::find(words, either);
    if (double_brackets == (either[0] == '-') || at == words.end() || at == words.begin()) continue;
    const Status left = test({words.begin(), at}, double_brackets),
                 right = test({at + 1, words.end()}, double_brackets);
    const bool decides = either == "||" || either == "-o";
    if (left == decides || right == decides) return decides;
    return left && right ? Status(!decides) : std::nullopt;
  }
  if (words.front() == "!") {
    const Status inside = test({words.begin() + 1, words.end()}, double_brackets);
    return inside ? Status(!*inside) : std::nullopt;
  }
  if (words.front() == "(" && words.back() == ")" && words.size() > 2)
    return test({words.begin() + 1, words.end() - 1}, double_brackets);
  const bool of_length = words.size() == 2 && (words[0] == "-z" || words[0] == "-n");
  if (of_length && is_left_open(words[1])) return words[0] == "-z";  // as "${X:-8}" does
  if (words.size() == 3 && words[2].empty() && words[1].ends_with('=') && is_left_open(words[0]))
    return words[1] != "!=";
  if (std::ranges::any_of(words, is_unknown)) return std::nullopt;
  if (words.size() == 1) return !words.front().empty();
  if (of_length) return words[1].empty() == (words[0] == "-z");
  if (words.size() != 3) return std::nullopt;
  const std::string& op = words[1];
  if (op == "=" || op == "==" || op == "!=") {
    const bool same = double_brackets ? matches_pattern(words[0], words[2]) : words[0] == words[2];
    return same == (op != "!=");
  }
  const auto a = number_in<std::int64_t>(words[0]), b = number_in<std::int64_t>(words[2]);
  const auto compares = mapped("-eq===|-ne=!=|-lt=<|-le=<=|-gt=>|-ge=>=|<=<|>=>", op);
  if (!a || !b || !compares) return std::nullopt;
  return integer_expression(fmt::format("{} {} {}", *a, *compares, *b)) == 1;
}

bool matches_pattern(const std::string& text, const std::string& pattern) {
  return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

}  // namespace harness::evidence
