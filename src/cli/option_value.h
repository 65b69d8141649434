#pragma once

#include <string_view>

#include "base/error.h"

namespace harness::cli {

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
