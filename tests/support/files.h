#pragma once

#include <filesystem>
#include <string>

namespace harness::test {

/// What is in the file; "" if it cannot be read.
std::string text_of(const std::filesystem::path& file);

}  // namespace harness::test
