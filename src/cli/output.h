#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "cli/verbs.h"
#include "report/document.h"
#include "report/words.h"

namespace harness::cli {

/// Text that may contain terminal escape sequences: coloured tables whose cells are clean.
struct TerminalText {
  std::string text;
};

/// The stream that all verbs print to. Text from files, paths and host names is escaped() for a terminal at each flush;
/// only TerminalText passes unchanged.
class CleanStream : public std::ostream {
 public:
  explicit CleanStream(std::ostream& to) : std::ostream(nullptr), buffer_(to) { rdbuf(&buffer_); }
  ~CleanStream() override { flush(); }
  std::ostream& to() const { return buffer_.to; }

 private:
  struct Buffer : std::stringbuf {
    explicit Buffer(std::ostream& out) : to(out) {}
    int sync() override;
    std::ostream& to;
  };
  Buffer buffer_;
};

std::ostream& operator<<(std::ostream& out, const TerminalText& text);

/// Whether `out` is a terminal that supports escape sequences.
bool is_terminal(const std::ostream& out);

/// The width of the terminal behind descriptor 1 or 2: this process's own, or that of the launcher that forwards its
/// output. nullopt for a file or a pipe, or if unknown.
std::optional<std::size_t> columns_of_terminal(int descriptor);

/// For output of ranks: a launcher may give them a terminal of their own and write their output to a file.
inline const ViewOptions under_a_launcher{.columns = {}, .colored = false};

/// Prints the document as Markdown if `format` is "md", else as text, arranged by the options. The width of text is
/// that of the terminal, else COLUMNS, else unlimited. Verdicts are coloured on a terminal, unless NO_COLOR is set or
/// the options disable it. Throws Error for a column that no table has.
void print(report::Document document, std::string_view format, const ViewOptions& options, std::ostream& out);

/// Writes an output file atomically and creates missing directories. Throws Error if it cannot be written, or if it
/// exists and `overwrite` is false; nothing is left behind then.
void write_output(const std::string& path, const std::function<void(std::ostream&)>& write, bool overwrite);
void write_output(const std::string& path, const std::string& text, bool overwrite);

/// Throws what write_output() would throw for this path; called before the text is computed.
void check_output(const std::string& path, bool overwrite);

/// Replaces the short names of cases in `words`, such as "TP2" from a narrow table, by their full names.
template <class Cases, class NameOf>
std::vector<std::string> full_names(std::vector<std::string> words, const Cases& cases, NameOf name_of) {
  for (std::string& word : words) {
    for (const auto& the_case : cases)
      if (report::short_name(name_of(the_case)) == word) word = name_of(the_case);
  }
  return words;
}

/// Parses the value of an option such as "--backend". Errors name the option.
template <class Parse>
auto option_value(std::string_view option, std::string_view text, Parse parse) {
  try {
    return parse(text);
  } catch (const Error& error) {
    fail("{}: {}", option, error.what());
  }
}

}  // namespace harness::cli
