#pragma once

#include <cstdint>
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

/// A command of a shell script, parsed and not run. Words are as written, with their quotes and dollars.
struct ShellCommand {
  enum class Kind : std::uint8_t {
    simple,      // words: assignments and a command with its arguments
    sequence,    // children, one after another
    chain,       // a && b || c: children, and in words what stands between them
    negation,    // ! a
    pipeline,    // a | b
    condition,   // words between [[ and ]]
    arithmetic,  // words: the text between (( and ))
    choice,      // if: condition, body, condition, body, …, and a body where there is an else
    cases,       // case: words: what is compared, then the patterns of each child, joined by |
    each,        // for: words: the name, then the list; children: the body
    repetition,  // while, until, for ((…)): the condition and the body
    function,    // words: its name; children: its body
  };
  Kind kind = Kind::simple;
  std::int64_t line = 0;
  bool inverted = false;  // until
  std::vector<std::string> words = {};
  std::vector<ShellRedirect> redirects = {};
  std::vector<ShellCommand> children = {};
};

/// Whether it stands in names of variables.
inline bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Parses what bash reads. A text that is none gives what could be understood of it. Linear in the text's length.
/// Throws Error for commands that are nested more than 64 deep.
ShellCommand parse_shell(std::string_view script, std::int64_t first_line = 1);
/// The words of a list between parentheses: "A=( … )".
std::vector<std::string> shell_list(std::string_view text);
/// How many bytes a quoted text, a substitution or a parenthesis takes that begins at `at`; the rest where it does not
/// end.
std::size_t shell_span(std::string_view text, std::size_t at, int depth = 0);

}  // namespace harness::evidence
