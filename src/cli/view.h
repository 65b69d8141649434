#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/clean_stream.h"
#include "cli/verbs.h"
#include "report/document.h"

namespace harness::cli {

/// Whether `out` is a terminal that knows escape sequences.
bool is_terminal(const std::ostream& out);

/// The columns of the terminal that a descriptor (1 or 2) of this process ends at: its own, or that of the launcher
/// that passes its output on. Nothing where that is a file or a pipe, or is not known.
std::optional<std::size_t> columns_of_terminal(int descriptor);

/// For the output of ranks: a launcher may give them a terminal of its own and write what they print to a file.
inline const ViewOptions under_a_launcher{.columns = {}, .sort = "order", .color = "never"};

/// The document as text for `out`: arranged as the options ask, as wide as the terminal that `out` is, or as COLUMNS
/// says, or without limit; verdicts in colour on a terminal, unless NO_COLOR is set, or as the options say.
/// Throws Error for a column that no table has.
TerminalText view(report::Document document, const ViewOptions& options, const std::ostream& out);
/// Prints it so, or for `format` "md" as Markdown.
void print(report::Document document, std::string_view format, const ViewOptions& options, std::ostream& out);

/// Names of files in tables: their own names where these tell them apart, else the paths as they were given.
std::vector<std::string> labels_of(const std::vector<std::string>& paths);

}  // namespace harness::cli
