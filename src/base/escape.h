#pragma once

#include <string>
#include <string_view>

namespace harness {

/// `text` for a terminal, whoever wrote it: control characters (C0, DEL and C1) and those that turn the direction of
/// writing come as \xNN or \uNNNN, and bytes that are not UTF-8 as \xNN.
std::string escaped(std::string_view text);
/// The same for a message of several lines: line ends and tabs stay.
std::string escaped_lines(std::string_view text);

}  // namespace harness
