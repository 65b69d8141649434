#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "evidence/shell.h"

namespace harness::evidence {
namespace {

constexpr std::string_view ends_of_words = " \t\n;&|<>()", quotes_and_dollars = "'\"`$";

bool is_one(std::string_view characters, char c) {
  return characters.find(c) != std::string_view::npos;
}

// Returns the length of a placeholder that the user replaces: "<PATH TO DATA>"; 0: none begins at `at`.
std::size_t placeholder_span(std::string_view text, std::size_t at) {
  if (at + 1 >= text.size() || text[at] != '<' || std::isalpha(static_cast<unsigned char>(text[at + 1])) == 0) return 0;
  const std::size_t end = text.find_first_of("<>\n$&|;'\"(", at + 1);
  if (end == std::string_view::npos || text[end] != '>' || text[end - 1] == ' ') return 0;
  const bool closed = end + 1 >= text.size() || is_one(" \t\n\\/.\"'`;)", text[end + 1]);
  return closed ? end + 1 - at : 0;
}

// Returns the length of a bracketed span, ignoring brackets in quotes and comments.
std::size_t bracket_span(std::string_view text, std::size_t at, char open, char close, int nesting) {
  std::size_t depth = 0, i = at;
  while (i < text.size()) {
    const char c = text[i];
    if (c == '\\') {
      i += 2;
    } else if (c == '\'' || c == '"' || c == '`') {
      i += shell_span(text, i, nesting + 1);
    } else if (c == '#' && open == '(' && i > 0 && is_one(" \n\t", text[i - 1])) {
      i = std::min(text.find('\n', i), text.size());
    } else {
      ++i;
      if (c == open) ++depth;
      if (c == close && --depth == 0) return i - at;
    }
  }
  return text.size() - at;
}

}  // namespace

std::size_t name_length(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0) return 0;
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_name_character) - text.begin());
}

std::string_view assigned_name(std::string_view word) {
  std::string_view name = word.substr(0, std::min(word.find('='), word.size()));
  if (name.size() == word.size()) return {};
  if (name.ends_with('+')) name.remove_suffix(1);
  if (name.ends_with(']')) name = name.substr(0, name.find('['));
  return is_name(name) ? name : std::string_view();
}

std::size_t shell_span(std::string_view text, std::size_t at, int depth) {
  constexpr int deepest = 32;
  if (depth > deepest) return text.size() - at;
  const std::string_view rest = text.substr(at);
  if (rest.starts_with('(')) return bracket_span(text, at, '(', ')', depth);
  if (rest.starts_with("$(")) return 1 + bracket_span(text, at + 1, '(', ')', depth);
  if (rest.starts_with("${")) return 1 + bracket_span(text, at + 1, '{', '}', depth);
  const bool escapes = rest.starts_with("$'");
  if (rest.starts_with('$') && !escapes) return 1;
  const char quote = escapes ? '\'' : rest[0];
  for (std::size_t i = escapes ? 2 : 1; i < rest.size();) {
    if (rest[i] == '\\' && (escapes || quote != '\'')) {
      i += 2;
    } else if (rest[i] == quote) {
      return i + 1;
    } else {
      const bool nests = quote == '"' && rest[i] == '$' && i + 1 < rest.size() && rest[i + 1] != '\'';
      i += nests ? shell_span(text, at + i, depth + 1) : 1;
    }
  }
  return rest.size();
}

std::int64_t ShellReader::line() {
  lines_ += std::ranges::count(text_.substr(counted_, at_ - counted_), '\n');
  counted_ = at_;
  return lines_;
}

bool ShellReader::eat(std::string_view expected) {
  if (!at(expected)) return false;
  at_ += expected.size();
  return true;
}

bool ShellReader::at_word(std::string_view word) const {
  const std::size_t behind = at_ + word.size();
  return at(word) && (behind >= text_.size() || is_one(ends_of_words, text_[behind]));
}

std::string_view ShellReader::until(std::string_view ends) {
  const std::size_t from = at_, end = std::min(text_.find_first_of(ends, at_), text_.size());
  at_ = std::min(end + 1, text_.size());
  return text_.substr(from, end - from);
}

std::string_view ShellReader::parenthesis() {
  const std::size_t from = at_;
  at_ += shell_span(text_, at_);
  return since(from);
}

void ShellReader::skip_blanks() {
  while (!at_end()) {
    if (is_one(" \t\r", text_[at_])) {
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

void ShellReader::skip_lines() {
  for (skip_blanks(); eat("\n"); skip_blanks()) at_ = std::max(at_, documents_end_);
}

std::string ShellReader::word() {
  const std::size_t begin = at_;
  while (!at_end()) {
    const char c = text_[at_];
    const bool array = c == '(' && since(begin).ends_with('=') && !assigned_name(since(begin)).empty();
    const bool substitution = at("<(") || at(">(");
    if (c == '\\') {
      at_ = std::min(at_ + 2, text_.size());
    } else if (is_one(quotes_and_dollars, c) || array) {
      at_ += shell_span(text_, at_);
    } else if (substitution) {
      at_ += 1 + shell_span(text_, at_ + 1);
    } else if (const std::size_t length = placeholder_span(text_, at_); length > 0) {
      at_ += length;
    } else if (is_one(ends_of_words, c)) {
      break;
    } else {
      ++at_;
    }
  }
  return std::string(since(begin));
}

std::vector<std::string> ShellReader::list() {
  std::vector<std::string> words;
  for (skip_lines(); !at_end(); skip_lines()) {
    words.push_back(word());
    if (!words.back().empty()) continue;
    words.pop_back();
    ++at_;
  }
  return words;
}

// Reads a here-document, which follows the line that names it and other here-documents of that line.
std::string ShellReader::document(std::string_view mark, bool tabs) {
  std::size_t from = documents_end_ > at_ ? documents_end_ : std::min(text_.find('\n', at_), text_.size()) + 1;
  const std::string end = replaced(mark, {{'\'', ""}, {'"', ""}, {'\\', ""}});
  std::string body;
  while (from < text_.size()) {
    const std::size_t stop = std::min(text_.find('\n', from), text_.size());
    std::string_view row = text_.substr(from, stop - from);
    from = std::min(stop + 1, text_.size());
    if (tabs) row.remove_prefix(std::min(row.find_first_not_of('\t'), row.size()));
    if (row == end) break;
    body.append(row) += '\n';
  }
  documents_end_ = std::min(from, text_.size());
  return body;
}

bool ShellReader::redirect(std::vector<ShellRedirect>& redirects) {
  std::size_t i = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
  if (i == at_ && at("&>")) ++i;
  if (i >= text_.size() || (text_[i] != '<' && text_[i] != '>')) return false;
  if (text_.substr(i + 1).starts_with('(') || placeholder_span(text_, i) > 0) return false;
  at_ = i;
  ShellRedirect found{
      .target = "", .writes = at(">"), .appends = at(">>"), .here_document = at("<<"), .is_word = at("<<<")};
  const bool document_follows = found.here_document && !found.is_word;
  while (!at_end() && is_one("<>&|", text_[at_])) ++at_;
  const bool tabs = document_follows && eat("-");
  skip_blanks();
  found.target = word();
  if (document_follows) {
    found.expands = found.target.find_first_of("'\"\\") == std::string::npos;
    found.target = document(found.target, tabs);
  }
  redirects.push_back(std::move(found));
  return true;
}

}  // namespace harness::evidence
