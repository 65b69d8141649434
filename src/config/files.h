#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/yaml_tree.h"

namespace harness::config {

/// Reads a text file that a person wrote: a regular file of at most 1 MiB, valid UTF-8, no control characters but line
/// ends and tabs, no tabs in indentation. Anything else is one problem of `source` and nullopt.
std::optional<std::string> read_text_file(const std::string& path, int source, Problems& problems);

/// Applies these checks to text that is already in memory. True if it is fine.
bool check_text(const std::string& text, int source, Problems& problems);

// Facts come with the program in folders of configs/, to which a user may add: hardware/, calibration/.

/// The names of a folder's files, without ".yaml", sorted.
std::vector<std::string> data_file_names(const std::filesystem::path& folder);

/// The file that `text` names in a configuration: FOLDER/TEXT.yaml beside it or among those that come with the program,
/// or a path, relative to the configuration's directory or else to the current one. Throws Error if there is none.
std::filesystem::path find_data_file(const std::string& folder, const std::string& text,
                                     const std::string& config_path);

/// The folder `configs` of the source tree or the bundle that this program is part of, or `share/harness/configs` where
/// it is installed; empty if there is none.
std::filesystem::path shipped_configs();

/// A row of configs/published/steps.csv or busbw.csv, by the names of its columns; what a source does not state is
/// empty.
using PublishedRow = std::map<std::string, std::string, std::less<>>;

/// All rows of a table. Throws Error if the file cannot be read, has more than 4 MiB or a row of another width.
std::vector<PublishedRow> read_published(const std::filesystem::path& table);

}  // namespace harness::config
