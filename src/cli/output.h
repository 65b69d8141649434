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

/// A text that may hold a terminal's own sequences: tables in colour, whose cells are clean.
struct TerminalText {
  std::string text;
};

/// The stream of all that a verb prints. Whatever came into it from a file, a path or a host name leaves it escaped()
/// for a terminal, at each flush; TerminalText alone passes as it is.
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

/// Whether `out` is a terminal that knows escape sequences.
bool is_terminal(const std::ostream& out);

/// The columns of the terminal that a descriptor (1 or 2) of this process ends at: its own, or that of the launcher
/// that passes its output on. Nothing where that is a file or a pipe, or is not known.
std::optional<std::size_t> columns_of_terminal(int descriptor);

/// For the output of ranks: a launcher may give them a terminal of its own and write what they print to a file.
inline const ViewOptions under_a_launcher{.columns = {}, .colored = false};

/// The document as text for `out`: arranged as the options ask, as wide as the terminal that `out` is, or as COLUMNS
/// says, or without limit; verdicts in colour on a terminal, unless NO_COLOR is set or the options say no.
/// Throws Error for a column that no table has.
TerminalText view(report::Document document, const ViewOptions& options, const std::ostream& out);
/// Prints it so, or for `format` "md" as Markdown.
void print(report::Document document, std::string_view format, const ViewOptions& options, std::ostream& out);

/// Names of files in tables, escaped(): their own names where these tell them apart, else the paths as they were given.
std::vector<std::string> labels_of(const std::vector<std::string>& paths);

/// Writes a file that a reader of results makes: whole or not at all, in directories that are made if they are missing.
/// Throws Error if it cannot be written, or if it is there and not to be overwritten; then nothing is left behind.
void write_output(const std::string& path, const std::function<void(std::ostream&)>& write, bool overwrite);
void write_output(const std::string& path, const std::string& text, bool overwrite);

/// Throws what write_output() would throw of the place, before the work that makes the text.
void check_output(const std::string& path, bool overwrite);

/// `words`, with the full names of cases that a narrow table calls by others: "TP2".
template <class Cases, class NameOf>
std::vector<std::string> full_names(std::vector<std::string> words, const Cases& cases, NameOf name_of) {
  for (std::string& word : words) {
    for (const auto& the_case : cases)
      if (report::short_name(name_of(the_case)) == word) word = name_of(the_case);
  }
  return words;
}

/// Parses the value of an option, such as "--backend". Throws Error that names the option, too.
template <class Parse>
auto option_value(std::string_view option, std::string_view text, Parse parse) {
  try {
    return parse(text);
  } catch (const Error& error) {
    fail("{}: {}", option, error.what());
  }
}

}  // namespace harness::cli
