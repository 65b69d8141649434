#pragma once

#include <string>
#include <string_view>

namespace harness::report {

// Texts of a result file may come from anywhere (host names, standard error of workers). On a terminal they must not
// move the cursor, in Markdown or on a page they must not become markup.

/// One line for a terminal: line breaks, control characters (C1's included) and marks that turn the direction of
/// writing become spaces, what is not UTF-8 '?'. Table and wrapped() do this themselves.
std::string one_line(std::string_view text);

/// For files: the same characters go, but line breaks and tabs stay; what is not UTF-8 becomes U+FFFD.
std::string cleaned(std::string_view text);

/// cleaned() for HTML and XML, between tags or within a quoted attribute, with everything escaped that would be markup.
std::string escaped_markup(std::string_view text);

/// cleaned() in one line of Markdown, with everything escaped that would be markup.
std::string inline_markdown(std::string_view text);

/// Breaks a paragraph at `width` columns; further lines are indented by `indent` spaces.
std::string wrapped(std::string_view paragraph, std::size_t width, std::size_t indent);

/// Width on a terminal: UTF-8 characters, taken to be one column each.
std::size_t columns_of(std::string_view text);

}  // namespace harness::report
