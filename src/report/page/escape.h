#pragma once

#include <string>
#include <string_view>

namespace harness::page {

/// cleaned() text for a page, between tags or within a quoted attribute, with everything escaped that would be markup.
std::string escaped(std::string_view text);

}  // namespace harness::page
