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

/// A redirection of a command's input or output.
struct ShellRedirect {
  std::string target;          // as written; for a here-document its text
  bool writes = false;         // > or >>
  bool appends = false;        // >>
  bool here_document = false;  // << or <<<
  bool is_word = false;        // <<<
  bool expands = true;         // here-document with an unquoted delimiter
};

/// Reads a script step by step as bash does. Words stay as written, with quotes and dollar signs. The text must outlive
/// the reader.
class ShellReader {
 public:
  explicit ShellReader(std::string_view text = {}, std::int64_t first_line = 1) : text_(text), lines_(first_line) {}

  bool at_end() const { return at_ >= text_.size(); }
  std::size_t place() const { return at_; }
  std::int64_t line();
  /// Returns the text read since a position.
  std::string_view since(std::size_t place) const { return text_.substr(place, at_ - place); }
  bool at(std::string_view expected) const { return text_.substr(at_).starts_with(expected); }
  bool eat(std::string_view expected);
  bool at_word(std::string_view word) const;
  bool eat_word(std::string_view word) { return at_word(word) && eat(word); }
  /// Reads up to and including one of these characters.
  std::string_view until(std::string_view ends);
  /// Reads the next byte, whatever it is.
  std::string_view byte() { return text_.substr(at_++, 1); }
  /// skip_blanks() skips blanks, comments and escaped line ends; skip_lines() skips all line ends and here-documents.
  void skip_blanks();
  void skip_lines();
  /// Reads "(…)" or "((…))".
  std::string_view parenthesis();
  /// Reads a word; "": there is none here.
  std::string word();
  /// Reads the words of a parenthesised list: "A=( … )".
  std::vector<std::string> list();
  /// Reads "2>&1", "> file", "&> file" or "<<EOF"; returns false if there is no redirection here.
  bool redirect(std::vector<ShellRedirect>& redirects);

 private:
  std::string document(std::string_view mark, bool tabs);

  std::string_view text_;
  std::size_t at_ = 0, counted_ = 0;
  std::int64_t lines_;
  std::size_t documents_end_ = 0;  // end of the here-documents that follow this line
};

inline bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
/// Returns the length of the variable name at the beginning of a text.
std::size_t name_length(std::string_view text);
inline bool is_name(std::string_view text) {
  return !text.empty() && name_length(text) == text.size();
}
/// Returns the name in "NAME=value", "NAME+=value" or "NAME[i]=value"; "": not an assignment.
std::string_view assigned_name(std::string_view word);
/// Returns the length in bytes of the quoted text, substitution or parenthesis that begins at `at`; the rest of the
/// text if it does not end.
std::size_t shell_span(std::string_view text, std::size_t at, int depth = 0);

/// Returns whether a text has unknown parts, such as the output of a command. Each one is a mark in the text that
/// survives joining and splitting.
bool is_unknown(std::string_view word);
/// Returns a text with "*" for its unknown parts.
std::string with_stars(std::string_view word);

/// A command of a script that starts a program, with its words as the shell would pass them.
struct ShellLaunch {
  std::int64_t line = 0;
  std::vector<std::string> words;
  NameValues environment;  // exported variables and those set before the command
};

/// Follows a script's effects as far as its text determines them. Runs nothing, opens no file, and ignores the
/// environment of harness itself.
class Shell {
 public:
  struct Variable {
    std::vector<std::string> items;
    bool array = false, exported = false;
    std::int64_t order = 0;  // number of its last assignment
  };
  struct State {
    std::map<std::string, Variable, std::less<>> variables;
    std::optional<std::vector<std::string>> arguments;  // $1, …; nothing: given by the user, unknown
    bool ended = false, exited = false;                 // reached exit or return; exit
    bool exports_all = false;                           // set -a
  };
  /// Whether a command succeeds; nothing if the script alone does not determine it.
  using Status = std::optional<bool>;

  /// `others`: further files by name, which commands such as `source` may read.
  explicit Shell(std::map<std::string, std::string> others = {}) : others_(std::move(others)) {}

  /// Follows a script. Throws Error if it is nested too deeply or its texts grow beyond the limit.
  void run(std::string_view script, std::int64_t first_line = 1);
  void set(const std::string& name, const std::string& value, bool exported);
  /// Follows a given file, or one that the script has written, with the arguments that follow its name. Returns false
  /// if there is no such file.
  bool run_file(std::span<const std::string> command);
  /// Follows something as another process: of the variables only these and Slurm's reach it, and it takes what it sets
  /// with it. Returns what `follow_it` returns.
  bool in_process(const NameValues& environment, const std::function<bool()>& follow_it);

  const std::vector<ShellLaunch>& launches() const { return launches_; }
  /// Here-documents written into files, by name, and those run by another shell or batch system.
  const std::map<std::string, std::string>& documents() const { return documents_; }
  /// Parts that were not followed, each with its line number.
  const std::vector<std::string>& refused() const { return refused_; }
  /// Returns why a word is unknown; "": it is known.
  std::string why_unknown(std::string_view word) const;

 private:
  friend class ShellExpansion;
  std::string unknown(const std::string& why);
  /// Returns whether a word is exactly one variable that neither the script nor a launcher sets.
  bool is_left_open(std::string_view word) const;
  const Variable* find(std::string_view name) const;
  void spend(std::size_t bytes);

  // shell_words.cpp, shell_arithmetic.cpp
  std::vector<std::string> words_of(const std::vector<std::string>& raw, std::size_t first = 0);
  std::string text_of(std::string_view raw, bool quoted = false);
  std::string unknown_of(std::string_view raw);
  /// Returns the text of a here-document or here-string.
  std::string text_of(const ShellRedirect& input) {
    return input.expands ? text_of(input.target, !input.is_word) : input.target;
  }
  std::optional<std::string> output_of_cat(std::string_view command);
  bool read_names(const std::vector<std::string>& words, const std::vector<ShellRedirect>& redirects,
                  const NameValues& before);
  std::optional<std::int64_t> arithmetic(std::string_view text);

  // shell.cpp: each function that reads a part of the script also follows it, unless it is skipped.
  Status follow(const ShellReader& from, Status (Shell::*part)());
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
  Status each(bool in_turn);
  bool each_in_turn(const std::string& name, const std::vector<std::string>& items);
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
  Status run_builtin(const std::vector<std::string>& words, const NameValues& before, bool& known);
  NameValues exported(const NameValues& before) const;
  void hide(const std::string& name);
  Status run_inside(const ShellReader& from, Status (Shell::*part)(),
                    std::optional<std::vector<std::string>> arguments);
  bool assign(std::string_view word, bool exported);
  void keep_document(const std::vector<ShellRedirect>& redirects, const std::vector<std::string>& words);
  std::optional<std::int64_t> computed(std::string_view text);
  Status compute(std::string_view text);  // for let and (( ))
  Status test(std::vector<std::string> words, bool double_brackets);

  std::map<std::string, std::string> others_;
  State state_;
  ShellReader reader_;
  std::map<std::string, ShellReader, std::less<>> functions_;           // positioned at their bodies
  std::vector<std::map<std::string, std::optional<Variable>>> locals_;  // of each function: what they hide
  std::list<std::string> scripts_;                                      // texts that the readers refer to
  std::vector<std::string> reasons_;
  std::vector<ShellLaunch> launches_;
  std::map<std::string, std::string> documents_;
  std::vector<std::string> refused_;
  std::int64_t line_ = 0, assignments_ = 0;
  std::string assigning_;  // the variable whose value is being read
  std::size_t spent_ = 0;
  int depth_ = 0, nesting_ = 0;           // functions and files; expansions
  int commands_ = 0, most_commands_ = 0;  // nested commands and their limit
  bool skips_ = false;
  bool failed_ = false;          // ended with a failure status
  Status returned_;              // status that the last exit or return gave
  std::int64_t maybe_ends_ = 0;  // branches that end, of conditions that are undecided
};

/// Evaluates "5 * 8" or "2**20"; returns nothing for any other text.
std::optional<std::int64_t> integer_expression(std::string_view expression);
/// Returns what a command such as "expr 32 / 4" prints; returns nothing for any other text.
std::optional<std::int64_t> result_of_expr(std::string_view command);
/// Returns whether a text matches a pattern with *, ? and [ ].
bool matches_pattern(const std::string& text, const std::string& pattern);

}  // namespace harness::evidence
