#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace harness::config {

// Facts that come with the program in a folder of configs/ and that a user may add to: hardware/, calibration/.

/// The names of a folder's files, without ".yaml", sorted.
std::vector<std::string> data_file_names(const std::filesystem::path& folder);

/// The file that `text` names in a configuration: FOLDER/TEXT.yaml beside it or among those that come with the program,
/// or a path, relative to the configuration's directory or else to the current one. Throws Error if there is none.
std::filesystem::path find_data_file(const std::string& folder, const std::string& text,
                                     const std::string& config_path);

}  // namespace harness::config
