#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace harness::config {

/// The folder `configs` of the source tree or the bundle that this program is part of, or `share/harness/configs` where
/// it is installed; empty if there is none.
std::filesystem::path shipped_configs();

/// What `hardware:` calls the file that lists this device, "h100-sxm", as find_hardware_for_device() finds it; "" if
/// none does. Throws Error like it.
std::string hardware_name_for_device(std::string_view device, const std::string& config_path);

}  // namespace harness::config
