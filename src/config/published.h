#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace harness::config {

/// A row of configs/published/steps.csv or busbw.csv, by the names of its columns; what a source does not state is
/// empty.
using PublishedRow = std::map<std::string, std::string, std::less<>>;

/// All rows of a table. Throws Error if the file cannot be read, has more than 4 MiB or a row of another width.
std::vector<PublishedRow> read_published(const std::filesystem::path& table);

}  // namespace harness::config
