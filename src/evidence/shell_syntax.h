#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace harness::evidence {

/// Where a command's input comes from or its output goes.
struct ShellRedirect {
  std::string target;          // as written; of a here-document its text
  bool writes = false;         // > or >>
  bool here_document = false;  // << or <<<
  bool expands = true;         // of a here-document: its mark stands unquoted
};

/// Reads along a script in steps as bash does. Words stay as written, with their quotes and dollars. The text must
/// outlive it.
class ShellReader {
 public:
  explicit ShellReader(std::string_view text = {}, std::int64_t first_line = 1) : text_(text), lines_(first_line) {}

  bool at_end() const { return at_ >= text_.size(); }
  std::size_t place() const { return at_; }
  std::int64_t line();
  /// The text that was read since a place.
  std::string_view since(std::size_t place) const { return text_.substr(place, at_ - place); }
  bool at(std::string_view expected) const { return text_.substr(at_).starts_with(expected); }
  bool eat(std::string_view expected);
  /// The next word if it is one of these; it is not taken.
  std::string_view next_of(std::span<const std::string_view> words) const;
  bool eat_word(std::string_view word);
  /// Up to one of these characters, which is taken as well.
  std::string_view until(std::string_view ends);
  /// The next byte, whatever it is.
  std::string_view byte() { return text_.substr(at_++, 1); }
  /// Blanks, comments and ends of lines that are quoted; skip_lines(): all ends of lines, and here-documents.
  void skip_blanks();
  void skip_lines();
  /// "(…)", "((…))"
  std::string_view parenthesis();
  /// "" where none stands.
  std::string word();
  /// The words of a list between parentheses: "A=( … )".
  std::vector<std::string> list();
  /// "2>&1", "> file", "&> file", "<<EOF": false where none stands here.
  bool redirect(std::vector<ShellRedirect>& redirects);

 private:
  std::string document(std::string_view mark, bool tabs);

  std::string_view text_;
  std::size_t at_ = 0, counted_ = 0;
  std::int64_t lines_;
  std::size_t documents_end_ = 0;  // of the here-documents that stand behind this line
};

/// Whether it stands in names of variables.
inline bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
/// How much of the beginning of a text is a variable's name.
std::size_t name_length(std::string_view text);
inline bool is_name(std::string_view text) {
  return !text.empty() && name_length(text) == text.size();
}
/// The name of "NAME=value", "NAME+=value", "NAME[i]=value"; "": it is none of them.
std::string_view assigned_name(std::string_view word);
/// How many bytes a quoted text, a substitution or a parenthesis takes that begins at `at`; the rest where it does not
/// end.
std::size_t shell_span(std::string_view text, std::size_t at, int depth = 0);

}  // namespace harness::evidence
