#include "evidence/shell_syntax.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace harness::evidence {
namespace {

using ShellKind = ShellCommand::Kind;

constexpr std::string_view ends_of_words = " \t\n;&|<>()";

// "NAME=", "NAME+=" or "NAME[…]=": what follows is a value.
bool begins_assignment(std::string_view word) {
  if (!word.ends_with('=')) return false;
  word.remove_suffix(word.ends_with("+=") ? 2 : 1);
  if (word.ends_with(']')) word = word.substr(0, word.find('['));
  return !word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) == 0 &&
         std::ranges::all_of(word, is_name_character);
}

// How long a placeholder is that the script's user replaces: "<PATH TO DATA>"; 0: none begins at `at`.
std::size_t placeholder_span(std::string_view text, std::size_t at) {
  if (at + 1 >= text.size() || text[at] != '<' || std::isalpha(static_cast<unsigned char>(text[at + 1])) == 0) return 0;
  const std::size_t end = text.find_first_of("<>\n$&|;'\"(", at + 1);
  if (end == std::string_view::npos || text[end] != '>' || text[end - 1] == ' ') return 0;
  const bool closed = end + 1 >= text.size() || std::string_view(" \t\n\\/.\"'`;)").find(text[end + 1]) != text.npos;
  return closed ? end + 1 - at : 0;
}

class Parser {
 public:
  explicit Parser(std::string_view text, std::int64_t first_line = 1) : text_(text), lines_(first_line) {}

  ShellCommand script() {
    ShellCommand all = sequence();
    while (at_ < text_.size()) {  // a closing word without its opening one
      ++at_;
      ShellCommand rest = sequence();
      std::ranges::move(rest.children, std::back_inserter(all.children));
    }
    return all;
  }

  std::vector<std::string> list() {
    std::vector<std::string> words;
    while (true) {
      skip_lines();
      if (at_ >= text_.size()) return words;
      std::string found = word();
      if (found.empty()) {
        ++at_;
      } else {
        words.push_back(std::move(found));
      }
    }
  }

 private:
  std::int64_t line() {
    lines_ += std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_),
                         text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    counted_ = at_;
    return lines_;
  }
  bool at(std::string_view expected) const { return text_.substr(at_).starts_with(expected); }
  bool eat(std::string_view expected) {
    if (!at(expected)) return false;
    at_ += expected.size();
    return true;
  }
  void skip_blanks() {
    while (at_ < text_.size()) {
      if (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r') {
        ++at_;
      } else if (at("\\\n")) {
        at_ += 2;
      } else if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }
  void skip_lines() {
    for (skip_blanks(); at_ < text_.size() && text_[at_] == '\n'; skip_blanks()) newline();
  }
  void newline() {
    ++at_;
    for (const auto& [redirect, mark] : std::exchange(awaited_, {})) read_document(redirect, mark);
  }
  void read_document(std::size_t index, const std::string& mark) {
    const bool tabs = mark.starts_with('-');
    const std::string end = replaced(mark.substr(1), {{'\'', ""}, {'"', ""}, {'\\', ""}});
    std::string& body = documents_[index];
    while (at_ < text_.size()) {
      const std::size_t stop = std::min(text_.find('\n', at_), text_.size());
      std::string_view row = text_.substr(at_, stop - at_);
      at_ = std::min(stop + 1, text_.size());
      if (tabs) row.remove_prefix(std::min(row.find_first_not_of('\t'), row.size()));
      if (row == end) return;
      body.append(row) += '\n';
    }
  }

  std::string word() {
    const std::size_t begin = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool array = c == '(' && begins_assignment(text_.substr(begin, at_ - begin));
      const bool substitution = (c == '<' || c == '>') && at_ + 1 < text_.size() && text_[at_ + 1] == '(';
      if (c == '\\') {
        at_ = std::min(at_ + 2, text_.size());
      } else if (c == '\'' || c == '"' || c == '`' || c == '$' || array) {
        at_ += shell_span(text_, at_);
      } else if (substitution) {
        at_ += 1 + shell_span(text_, at_ + 1);
      } else if (const std::size_t length = placeholder_span(text_, at_); length > 0) {
        at_ += length;
      } else if (ends_of_words.find(c) != std::string_view::npos) {
        break;
      } else {
        ++at_;
      }
    }
    return std::string(text_.substr(begin, at_ - begin));
  }
  // The next word if it is one of these; it is not taken.
  std::string_view next_of(std::span<const std::string_view> words) const {
    for (const std::string_view word : words) {
      if (!at(word)) continue;
      const std::size_t behind = at_ + word.size();
      if (behind >= text_.size() || ends_of_words.find(text_[behind]) != std::string_view::npos) return word;
    }
    return {};
  }
  bool eat_word(std::string_view word) {
    const std::array<std::string_view, 1> one{word};
    return !next_of(one).empty() && eat(word);
  }

  ShellCommand sequence() {
    static constexpr std::array<std::string_view, 8> closing{"then", "elif", "else", "fi", "do", "done", "esac", "}"};
    ShellCommand all{.kind = ShellKind::sequence, .line = line()};
    while (true) {
      skip_lines();
      if (at_ >= text_.size() || !next_of(closing).empty() || at(")") || at(";;")) return all;
      if (eat(";") || eat("&") || eat("|")) continue;
      const std::size_t before = at_;
      all.children.push_back(chain());
      if (at_ == before) ++at_;
    }
  }
  ShellCommand chain() {
    ShellCommand first = negated();
    skip_blanks();
    if (!at("&&") && !at("||")) return first;
    ShellCommand all{.kind = ShellKind::chain, .line = first.line};
    all.children.push_back(std::move(first));
    while (at("&&") || at("||")) {
      all.words.emplace_back(text_.substr(at_, 2));
      at_ += 2;
      skip_lines();
      all.children.push_back(negated());
      skip_blanks();
    }
    return all;
  }
  ShellCommand negated() {
    bool inverse = false;
    while (eat_word("!")) {
      inverse = !inverse;
      skip_blanks();
    }
    if (!inverse) return pipeline();
    ShellCommand found{.kind = ShellKind::negation, .line = line()};
    found.children.push_back(pipeline());
    return found;
  }
  ShellCommand pipeline() {
    ShellCommand first = command();
    skip_blanks();
    if (!at("|") || at("||")) return first;
    ShellCommand all{.kind = ShellKind::pipeline, .line = first.line};
    all.children.push_back(std::move(first));
    while (at("|") && !at("||")) {
      if (!eat("|&")) eat("|");
      skip_lines();
      all.children.push_back(command());
      skip_blanks();
    }
    return all;
  }

  ShellCommand command() {
    constexpr int deepest = 64;
    if (++depth_ > deepest) fail("line {}: it is nested more than {} deep", line(), deepest);
    ShellCommand found = compound();
    skip_blanks();
    while (at_ < text_.size() && redirect(found)) skip_blanks();
    --depth_;
    return found;
  }
  ShellCommand compound() {
    skip_blanks();
    const std::int64_t begin = line();
    if (eat_word("if")) return choice(begin);
    if (eat_word("case")) return cases(begin);
    if (eat_word("for") || eat_word("select")) return loop(begin);
    const bool until = eat_word("until");
    if (until || eat_word("while")) {
      ShellCommand found{.kind = ShellKind::repetition, .line = begin, .inverted = until};
      found.children.push_back(sequence());
      found.children.push_back(body());
      return found;
    }
    if (eat_word("function")) {
      skip_blanks();
      return function(word(), begin);
    }
    if (eat_word("[[")) return condition(begin);
    if (at("((")) {
      const std::size_t length = shell_span(text_, at_);
      ShellCommand found{.kind = ShellKind::arithmetic, .line = begin};
      if (length >= 4) found.words.emplace_back(text_.substr(at_ + 2, length - 4));
      at_ += length;
      return found;
    }
    const bool group = eat_word("{");
    if (group || eat("(")) {
      ShellCommand found = sequence();
      skip_lines();
      eat(group ? "}" : ")");
      return found;
    }
    return simple(begin);
  }
  // Between do and done, or between braces.
  ShellCommand body() {
    skip_lines();
    eat(";");
    skip_lines();
    const bool braces = !eat_word("do") && eat_word("{");
    ShellCommand found = sequence();
    eat_word(braces ? "}" : "done");
    return found;
  }
  ShellCommand choice(std::int64_t begin) {
    ShellCommand found{.kind = ShellKind::choice, .line = begin};
    do {
      found.children.push_back(sequence());
      eat_word("then");
      found.children.push_back(sequence());
    } while (eat_word("elif"));
    if (eat_word("else")) found.children.push_back(sequence());
    eat_word("fi");
    return found;
  }
  ShellCommand cases(std::int64_t begin) {
    skip_blanks();
    ShellCommand found{.kind = ShellKind::cases, .line = begin, .words = {word()}};
    skip_lines();
    eat_word("in");
    for (skip_lines(); at_ < text_.size() && !eat_word("esac"); skip_lines()) {
      eat("(");
      const std::size_t close = std::min(text_.find_first_of(")\n", at_), text_.size());
      found.words.emplace_back(trim(text_.substr(at_, close - at_)));
      at_ = std::min(close + 1, text_.size());
      found.children.push_back(sequence());
      if (!eat(";;&") && !eat(";;")) eat(")");
    }
    return found;
  }
  ShellCommand loop(std::int64_t begin) {
    skip_blanks();
    if (at("((")) {
      ShellCommand counted{.kind = ShellKind::repetition, .line = begin};
      counted.children.push_back(compound());
      counted.children.push_back(body());
      return counted;
    }
    ShellCommand found{.kind = ShellKind::each, .line = begin, .words = {word()}};
    skip_lines();
    if (eat_word("in")) {
      for (skip_blanks(); at_ < text_.size() && ends_of_words.find(text_[at_]) == std::string_view::npos; skip_blanks())
        found.words.push_back(word());
    }
    found.children.push_back(body());
    return found;
  }
  ShellCommand function(std::string name, std::int64_t begin) {
    skip_blanks();
    if (eat("(")) {
      skip_blanks();
      eat(")");
    }
    skip_lines();
    ShellCommand found{.kind = ShellKind::function, .line = begin, .words = {std::move(name)}};
    found.children.push_back(command());
    return found;
  }
  ShellCommand condition(std::int64_t begin) {
    ShellCommand found{.kind = ShellKind::condition, .line = begin};
    while (at_ < text_.size()) {
      skip_lines();
      if (eat("]]") || at_ >= text_.size()) break;
      if (at("&&") || at("||")) {
        found.words.emplace_back(text_.substr(at_, 2));
        at_ += 2;
      } else if (std::string part = word(); !part.empty()) {
        found.words.push_back(std::move(part));
      } else {
        found.words.emplace_back(1, text_[at_++]);
      }
    }
    return found;
  }
  ShellCommand simple(std::int64_t begin) {
    ShellCommand found{.kind = ShellKind::simple, .line = begin};
    while (at_ < text_.size()) {
      skip_blanks();
      if (redirect(found)) continue;
      if (at_ >= text_.size()) break;
      std::string next = word();
      if (next.empty()) {
        const bool defines = at("(") && found.words.size() == 1;
        if (defines) return function(std::move(found.words.front()), begin);
        break;
      }
      found.words.push_back(std::move(next));
    }
    return found;
  }
  // "2>&1", "> file", "&> file", "<<EOF": not taken where none stands here.
  bool redirect(ShellCommand& of) {
    std::size_t i = at_;
    while (i < text_.size() && std::isdigit(static_cast<unsigned char>(text_[i])) != 0) ++i;
    if (i == at_ && text_.substr(i).starts_with("&>")) ++i;
    if (i >= text_.size() || (text_[i] != '<' && text_[i] != '>')) return false;
    if (i + 1 < text_.size() && text_[i + 1] == '(') return false;
    if (placeholder_span(text_, i) > 0) return false;
    at_ = i;
    ShellRedirect found;
    const bool document = at("<<") && !at("<<<");
    found.writes = text_[at_] == '>';
    found.here_document = at("<<");
    while (at_ < text_.size() && std::string_view("<>&|").find(text_[at_]) != std::string_view::npos) ++at_;
    std::string mark = document && eat("-") ? "-" : " ";
    skip_blanks();
    found.target = word();
    if (document) {
      found.expands = found.target.find_first_of("'\"\\") == std::string::npos;
      documents_.emplace_back();
      awaited_.emplace_back(documents_.size() - 1, mark + found.target);
      found.target.clear();
      found.target = std::to_string(documents_.size() - 1);
    }
    of.redirects.push_back(std::move(found));
    return true;
  }

 public:
  // Here-documents stand behind the command that reads them, so their texts come last.
  void give_documents(ShellCommand& to) {
    for (ShellRedirect& redirect : to.redirects) {
      if (!redirect.here_document) continue;
      const auto index = number_in<std::size_t>(redirect.target);
      if (index && *index < documents_.size()) redirect.target = documents_[*index];
    }
    for (ShellCommand& child : to.children) give_documents(child);
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0, counted_ = 0;
  std::int64_t lines_;
  int depth_ = 0;
  std::vector<std::string> documents_;
  std::vector<std::pair<std::size_t, std::string>> awaited_;  // until the line ends
};

}  // namespace

ShellCommand parse_shell(std::string_view script, std::int64_t first_line) {
  Parser parser(script, first_line);
  ShellCommand all = parser.script();
  parser.give_documents(all);
  return all;
}

std::vector<std::string> shell_list(std::string_view text) {
  return Parser(text).list();
}

}  // namespace harness::evidence
