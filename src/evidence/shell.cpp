#include "evidence/shell.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "evidence/input.h"

namespace harness::evidence {
namespace {

using Status = Shell::Status;
constexpr int deepest_commands = 64;  // in one text

// Keeps the leading words that two branches share; the rest is unknown.
std::string common(const std::string& a, const std::string& b, const std::string& unknown) {
  std::size_t same = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  const auto ends_word = [&](const std::string& text) { return same == text.size() || text[same] == ' '; };
  if (!(ends_word(a) && ends_word(b))) same = a.rfind(' ', same == 0 ? 0 : same - 1) + 1;
  if (same == 0) return unknown;
  return a.substr(0, same) + " " + unknown;
}

}  // namespace

void Shell::refuse(std::int64_t line, const std::string& what) {
  constexpr std::size_t most = 20;
  if (refused_.size() < most) add_once(refused_, fmt::format("line {}: {}", line, what));
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
  follow(ShellReader(scripts_.emplace_back(script), first_line), &Shell::whole_script);
  state_.ended = state_.exited = false;
}

Status Shell::follow(const ShellReader& from, Status (Shell::*part)()) {
  const ShellReader outer = std::exchange(reader_, from);
  const int most = std::exchange(most_commands_, commands_ + deepest_commands);
  const Status status = (this->*part)();
  reader_ = outer;
  most_commands_ = most;
  return status;
}

Status Shell::whole_script() {
  for (sequence(); !reader_.at_end(); sequence()) reader_.byte();  // a closing word without an opening one
  return true;
}

Status Shell::skip(Status (Shell::*part)()) {
  const bool before = std::exchange(skips_, true);
  (this->*part)();
  skips_ = before;
  return true;
}

// Returns the state before a branch, for merging. Copies cost time, so they count as work.
Shell::State Shell::remembered(std::size_t weight) {
  for (const auto& [name, variable] : state_.variables) spend(weight * variable.items.size());
  return state_;
}

// A script that exits before it launches anything has checked its user's settings: assumes that the check passes.
void Shell::pass_check(std::int64_t line) {
  if (!state_.ended || !failed_ || !launches_.empty()) return;
  state_.ended = state_.exited = failed_ = false;
  refuse(line, "it stops here unless its settings are filled in");
}

// Marks whatever differs from another outcome as unknown.
void Shell::merge(const State& other, std::int64_t line) {
  maybe_ends_ += other.ended || state_.ended ? 1 : 0;
  if (other.ended) return;
  if (state_.ended) {
    state_ = other;
    return;
  }
  for (const auto& [name, theirs] : other.variables) state_.variables.try_emplace(name);
  for (auto& [name, ours] : state_.variables) {
    const Variable theirs = value_at(other.variables, name, {});
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

Status Shell::sequence() {
  static constexpr std::array<Text, 8> closing{"then", "elif", "else", "fi", "do", "done", "esac", "}"};
  Status last = true;
  while (true) {
    const std::size_t before = reader_.place();
    reader_.skip_lines();
    spend(reader_.place() - before);
    const bool closes = std::ranges::any_of(closing, [&](Text word) { return reader_.at_word(word); });
    if (reader_.at_end() || closes || reader_.at(")") || reader_.at(";;") || reader_.at(";&")) return last;
    if (reader_.eat(";") || reader_.eat("&") || reader_.eat("|")) continue;
    const std::size_t begin = reader_.place();
    last = chain();
    if (reader_.place() == begin) reader_.byte();
  }
}

Status Shell::chain() {
  const std::int64_t line = reader_.line();
  const bool follows_it = follows();
  Status status = pipeline();
  for (reader_.skip_blanks(); reader_.at("&&") || reader_.at("||"); reader_.skip_blanks()) {
    const bool needed = reader_.eat("&&");
    if (!needed) reader_.eat("||");
    reader_.skip_lines();
    if (!follows_it || status == !needed) {
      skip(&Shell::pipeline);
    } else if (status == needed) {
      status = pipeline();
      pass_check(line);
    } else {
      const State skipped = remembered(1);
      pipeline();
      merge(skipped, line);
    }
  }
  return status;
}

Status Shell::pipeline() {
  bool inverse = false;
  for (reader_.skip_blanks(); reader_.eat_word("!"); reader_.skip_blanks()) inverse = !inverse;
  Status status = command();
  bool several = false;
  for (reader_.skip_blanks(); reader_.at("|") && !reader_.at("||"); reader_.skip_blanks()) {
    if (!reader_.eat("|&")) reader_.eat("|");
    reader_.skip_lines();
    status = command();
    several = true;
  }
  if (several && status != true) status = std::nullopt;
  return inverse && status ? !*status : status;
}

Status Shell::command() {
  if (++commands_ > most_commands_) fail("line {}: it is nested more than {} deep", reader_.line(), deepest_commands);
  reader_.skip_blanks();
  line_ = reader_.line();
  spend(16);
  const Status status = compound();
  --commands_;
  return status;
}

Status Shell::compound() {
  if (reader_.eat_word("if")) return choice();
  if (reader_.eat_word("case")) return cases();
  if (reader_.eat_word("for")) return each(true);
  if (reader_.eat_word("select")) return each(false);
  const bool until = reader_.eat_word("until");
  if (until || reader_.eat_word("while")) {
    const std::size_t begin = reader_.place();
    const Status holds = sequence();
    return repetition(reader_.since(begin), until && holds ? !*holds : holds);
  }
  if (reader_.eat_word("function")) {
    reader_.skip_blanks();
    return function(reader_.word());
  }
  if (reader_.eat_word("[[")) return condition();
  if (reader_.at("((")) {
    const Text text = reader_.parenthesis();
    return follows() && text.size() >= 4 ? compute(text.substr(2, text.size() - 4)) : std::nullopt;
  }
  const bool braces = reader_.eat_word("{");
  if (!braces && !reader_.eat("(")) return simple();
  State outside;  // of a subshell, which takes what it sets with it
  if (!braces) outside = remembered(1);
  const Status status = sequence();
  reader_.skip_lines();
  reader_.eat(braces ? "}" : ")");
  if (!braces) state_ = std::move(outside);
  std::vector<ShellRedirect> redirects;
  for (reader_.skip_blanks(); reader_.redirect(redirects);) reader_.skip_blanks();
  if (follows()) keep_document(redirects, {"cat"});
  return status;
}

Status Shell::condition() {
  std::vector<std::string> words;
  for (reader_.skip_lines(); !reader_.at_end() && !reader_.eat("]]"); reader_.skip_lines()) {
    std::string word = reader_.word();
    for (const Text either : {"&&", "||"}) {
      if (word.empty() && reader_.eat(either)) word = either;
    }
    if (word.empty()) word = reader_.byte();
    words.push_back(follows() ? text_of(word) : word);
  }
  return follows() ? test(std::move(words), true) : true;
}

Status Shell::choice() {
  std::vector<std::pair<State, std::int64_t>> outcomes;  // undecided outcomes with their lines
  bool decided = !follows();
  Status status = true;
  do {
    const std::int64_t line = reader_.line();
    const Status holds = decided ? skip(&Shell::sequence) : sequence();
    reader_.eat_word("then");
    if (decided || holds == false) {
      skip(&Shell::sequence);
    } else if (holds == true) {
      status = sequence();
      pass_check(line);
      decided = true;
    } else {
      State before = remembered(16);
      sequence();
      outcomes.emplace_back(std::exchange(state_, std::move(before)), line);
    }
  } while (reader_.eat_word("elif"));
  if (reader_.eat_word("else")) status = decided ? skip(&Shell::sequence) : sequence();
  reader_.eat_word("fi");
  for (auto outcome = outcomes.rbegin(); outcome != outcomes.rend(); ++outcome) merge(outcome->first, outcome->second);
  return outcomes.empty() ? status : std::nullopt;
}

Status Shell::cases() {
  const std::int64_t line = reader_.line();
  const bool follows_it = follows();
  reader_.skip_blanks();
  const std::string raw = reader_.word(), text = follows_it ? text_of(raw) : "";
  const State before = state_;
  std::optional<State> outcome;
  bool decided = !follows_it, any = false, falls = false;  // any: a pattern takes whatever is left; falls: ";&"
  Status status = true;
  reader_.skip_lines();
  reader_.eat_word("in");
  for (reader_.skip_lines(); !reader_.at_end() && !reader_.eat_word("esac"); reader_.skip_lines()) {
    reader_.eat("(");
    const std::vector<Text> patterns = split(reader_.until(")\n"), '|');
    const auto matches = [&](Text pattern) { return matches_pattern(text, text_of(trim(pattern))); };
    const bool open = follows_it && is_unknown(text);
    const bool taken = falls || (!decided && (open || std::ranges::any_of(patterns, matches)));
    if (!taken) {
      skip(&Shell::sequence);
    } else if (!open) {
      status = sequence();
      decided = true;
    } else {
      remembered(16);
      if (falls)
        merge(before, line);
      else
        state_ = before;
      sequence();
      any = any || std::ranges::any_of(patterns, [](Text pattern) { return trim(pattern) == "*"; });
    }
    const bool goes_on = reader_.eat(";&"), tests_on = reader_.eat(";;&");
    if (!goes_on && !tests_on && !reader_.eat(";;")) reader_.eat(")");
    reader_.skip_lines();
    falls = taken && goes_on && !reader_.at("esac");
    if (taken && tests_on) decided = false;
    if (!taken || !open || falls) continue;
    if (outcome) merge(*outcome, line);
    outcome = state_;
  }
  if (outcome && !any) merge(before, line);
  return outcome ? std::nullopt : status;
}

// Reads the commands between do and done, or between braces.
Status Shell::body() {
  reader_.skip_lines();
  reader_.eat(";");
  reader_.skip_lines();
  const bool braces = !reader_.eat_word("do") && reader_.eat_word("{");
  sequence();
  reader_.eat_word(braces ? "}" : "done");
  return true;
}

// Follows a loop word by word. Returns false and changes nothing if it launches something or may leave out words.
bool Shell::each_in_turn(const std::string& name, const std::vector<std::string>& items) {
  const ShellReader begin = reader_;
  const State outside = remembered(16);
  const std::size_t before = launches_.size();
  for (const std::string& item : items) {
    reader_ = begin;
    set(name, item, false);
    body();
    const bool leaves = state_.ended || has_any(reader_.since(begin.place()), "break|continue");
    if (launches_.size() == before && !leaves) continue;
    launches_.resize(before);
    state_ = outside;
    reader_ = begin;
    return false;
  }
  return true;
}

// `in_turn`: for each of the words; otherwise for those that the user selects.
Status Shell::each(bool in_turn) {
  const std::int64_t line = reader_.line();
  reader_.skip_blanks();
  if (reader_.at("((")) return repetition("", compound());
  const std::string name = reader_.word();
  std::vector<std::string> raw;
  reader_.skip_lines();
  if (reader_.eat_word("in")) {
    for (reader_.skip_blanks(); !(raw.emplace_back(reader_.word())).empty();) reader_.skip_blanks();
    raw.pop_back();
  }
  const std::vector<std::string> items = follows() ? words_of(raw) : raw;
  if (!follows() || (items.empty() && !raw.empty())) return skip(&Shell::body);
  const std::size_t before = launches_.size();
  // "{0..7}" and "*.sh" stand for words that are not known here.
  const auto stands_for_more = [](const std::string& item) {
    return is_unknown(item) || item.find_first_of("{*?[") != Text::npos;
  };
  const bool known = in_turn && !items.empty() && std::ranges::none_of(items, stands_for_more);
  const bool one = known && items.size() == 1;
  constexpr std::size_t most_turns = 16;
  if (known && !one && items.size() <= most_turns && is_name(name) && each_in_turn(name, items)) return true;
  const State skipped = remembered(1);
  if (is_name(name))
    set(name, one ? items.front() : unknown(fmt::format("line {}: a loop changes {}", line, name)), false);
  body();
  if (!one && !state_.ended) merge(skipped, line);  // it was followed once and may run more often
  if (launches_.size() == before || one) return true;
  refuse(line, known ? fmt::format("a loop over {} launches", items.size()) : "a loop around a launch");
  return true;
}

Status Shell::repetition(Text condition, Status runs) {
  const std::int64_t line = line_;
  // "while [ $# -gt 0 ]" and getopts read arguments, and there are none here.
  const bool of_arguments = has_any(condition, "getopts|$#|$1|${1");
  if (!follows() || runs == false || (of_arguments && !runs)) return skip(&Shell::body);
  const std::size_t before = launches_.size();
  const State skipped = state_;
  body();
  if (!runs || !state_.ended) merge(skipped, line);
  if (launches_.size() > before) refuse(line, "a loop around a launch");
  return true;
}

Status Shell::function(const std::string& name) {
  reader_.skip_blanks();
  if (reader_.eat("(")) {
    reader_.skip_blanks();
    reader_.eat(")");
  }
  reader_.skip_lines();
  if (follows()) functions_.insert_or_assign(name, reader_);
  return skip(&Shell::command);
}

}  // namespace harness::evidence
