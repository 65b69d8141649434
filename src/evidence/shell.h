#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "evidence/shell_syntax.h"

namespace harness::evidence {

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

  // shell_words.cpp
  std::vector<std::string> words_of(const std::vector<std::string>& raw, std::size_t first = 0);
  std::string text_of(std::string_view raw);
  std::string document_of(std::string_view raw);
  std::string unknown_of(std::string_view raw);
  std::optional<std::int64_t> arithmetic(std::string_view text);
  Status compute(std::string_view text);

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
