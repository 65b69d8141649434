#pragma once

#include <string>
#include <string_view>

namespace harness::config {

// Apart from the registry, so that what links a backend needs no reader of YAML.

/// A key as people look it up: in lower case, without leading dashes, _ for -.
std::string key_words(std::string_view key);
/// Why there is nothing like this key or value here, such as experts or fp8; "" for what is not known to be missing.
std::string nothing_like(std::string_view word);

}  // namespace harness::config
