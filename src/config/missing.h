#pragma once

#include <string>
#include <string_view>

namespace harness::config {

/// A key as synonyms.h looks it up: in lower case, without leading dashes, _ for -. Apart from the synonyms, as the
/// words of what is missing are, because backends need both and not the registry.
std::string key_words(std::string_view key);

}  // namespace harness::config
