#pragma once

#include <string>
#include <string_view>

namespace harness::html {

/// Text for a page, between tags or within a quoted attribute. Everything in a result file may come from elsewhere
/// (host names, standard error of workers): markup is escaped; what is not UTF-8, control characters and the marks that
/// turn the direction of writing go. Line breaks and tabs stay.
std::string escaped(std::string_view text);

/// The same cleaning without HTML: for Markdown, in which `inline_markdown` also escapes what would be markup.
std::string cleaned(std::string_view text);
std::string inline_markdown(std::string_view text);

}  // namespace harness::html
