#pragma once

#include <string>

#include "traces/capture.h"

namespace harness::traces {

/// Reads an export of Nsight Systems (`nsys export --type sqlite`), schemas 2 and 3. The file is opened read-only; only
/// the tables and columns that the analysis needs are read, where they exist. Throws Error for a database that is no
/// such export, that is damaged or holds more than most_events, and where the build has no SQLite.
Capture read_nsight(const std::string& path);

}  // namespace harness::traces
