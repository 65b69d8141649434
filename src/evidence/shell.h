#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

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

/// A text of a script where parts may be unknown, such as what a command would print. Such a part stands as a mark in
/// it, which survives joining and splitting.
bool is_unknown(std::string_view word);

/// A command of a script that starts a program: words as the shell would pass them.
struct ShellLaunch {
  std::int64_t line = 0;
  std::vector<std::string> words;
  NameValues environment;  // exported variables, and those before the command
};

/// Follows what a script would do, as far as its text says it. Nothing of it is run, no file is opened, and the
/// reader's own environment does not count.
class Shell {
 public:
  struct Variable {
    std::vector<std::string> items;
    bool array = false, exported = false;
    std::int64_t order = 0;  // of its last assignment
  };
  struct State {
    std::map<std::string, Variable, std::less<>> variables;
    std::optional<std::vector<std::string>> arguments;  // $1, …; nothing: as the person gave them, unknown
    bool ended = false;                                 // by exit or return
    bool exports_all = false;                           // set -a
  };
  /// Whether a command succeeds; nothing where the script alone does not say it.
  using Status = std::optional<bool>;

  /// `others`: further files by name, which `source` and the like may read.
  explicit Shell(std::map<std::string, std::string> others = {}) : others_(std::move(others)) {}

  /// Follows a script. Throws Error for one that is nested too deep or whose texts grow beyond all bounds.
  void run(std::string_view script, std::int64_t first_line = 1);
  void set(const std::string& name, const std::string& value, bool exported);
  /// Follows a file that was given, or that the script has written, with arguments behind its name; false: there is no
  /// such file.
  bool run_file(const std::vector<std::string>& words, std::size_t name = 0);

  /// Commands that may start a program, in order.
  const std::vector<ShellLaunch>& launches() const { return launches_; }
  /// Here-documents that are written into files, by name, and those that another shell or batch system runs.
  const std::map<std::string, std::string>& documents() const { return documents_; }
  /// Parts that were not followed, each with its line.
  const std::vector<std::string>& refused() const { return refused_; }
  /// Why a word is unknown; "" where it is known.
  std::string why_unknown(std::string_view word) const;

 private:
  friend class ShellExpansion;
  std::string unknown(const std::string& why);
  /// Whether a word is all of a variable that neither the script nor a launcher sets.
  bool is_left_open(std::string_view word) const;
  const Variable* find(std::string_view name) const;
  void spend(std::size_t bytes);

  // shell_words.cpp, shell_arithmetic.cpp
  std::vector<std::string> words_of(const std::vector<std::string>& raw, std::size_t first = 0);
  std::string text_of(std::string_view raw, bool quoted = false);
  std::string unknown_of(std::string_view raw);
  std::optional<std::int64_t> arithmetic(std::string_view text);

  // shell.cpp: what reads a part of the script follows it as well, unless it is skipped.
  void follow(const ShellReader& from, Status (Shell::*part)());
  Status skip(Status (Shell::*part)());
  bool follows() const { return !skips_ && !state_.ended; }
  Status whole_script();
  Status sequence();
  Status chain();
  Status pipeline();
  Status command();
  Status compound();
  Status condition();
  Status choice();
  Status cases();
  Status each();
  Status repetition(std::string_view condition, Status runs);
  Status body();
  Status function(const std::string& name);
  State remembered(std::size_t weight);
  void merge(const State& other, std::int64_t line);
  void pass_check(std::int64_t line);
  void refuse(std::int64_t line, const std::string& what);

  // shell_commands.cpp
  Status simple();
  Status run_simple(const std::vector<std::string>& raw, const std::vector<ShellRedirect>& redirects);
  Status run_builtin(const std::vector<std::string>& words, bool& known);
  Status run_inside(const ShellReader& from, Status (Shell::*part)(),
                    std::optional<std::vector<std::string>> arguments);
  bool assign(std::string_view word, bool exported);
  void keep_document(const std::vector<ShellRedirect>& redirects, const std::vector<std::string>& words);
  Status compute(std::string_view text);
  Status test(std::vector<std::string> words, bool double_brackets);

  std::map<std::string, std::string> others_;
  State state_;
  ShellReader reader_;
  std::map<std::string, ShellReader, std::less<>> functions_;  // at their bodies
  std::list<std::string> scripts_;                             // that readers read
  std::vector<std::string> reasons_;
  std::vector<ShellLaunch> launches_;
  std::map<std::string, std::string> documents_;
  std::vector<std::string> refused_;
  std::int64_t line_ = 0, assignments_ = 0;
  std::string assigning_;  // the variable whose value is being read
  std::size_t spent_ = 0;
  int depth_ = 0, nesting_ = 0;           // of functions and files, of expansions
  int commands_ = 0, most_commands_ = 0;  // nested ones, and how many may be
  bool skips_ = false;
  bool failed_ = false;  // it ended with a status of failure
};

/// Whether a command with these words may start a program on other ranks or in Python.
bool may_start(const std::vector<std::string>& words);
/// The integer that "5 * 8" or "2**20" is; nothing for any other text.
std::optional<std::int64_t> integer_expression(std::string_view expression);
/// Whether a text matches a pattern of * ? and [ ].
bool matches_pattern(const std::string& text, const std::string& pattern);

}  // namespace harness::evidence
