#include "nccl/log_file.h"

#include <cstdlib>
#include <filesystem>

#include "base/file.h"

namespace harness::nccl {

LogFile::LogFile() : folder_("harness-nccl") {
  if (folder_.path().empty()) return;  // no space: then there is no log
  path_ = folder_.path() + "/log";
  ::setenv("NCCL_DEBUG", "INFO", 1);
  ::setenv("NCCL_DEBUG_SUBSYS", "INIT,BOOTSTRAP,ENV,NET,GRAPH,TUNING,REG", 1);
  ::setenv("NCCL_DEBUG_FILE", path_.c_str(), 1);
}

std::string LogFile::take(std::size_t max_bytes) const {
  std::string text = try_read_file(path_, max_bytes, TooLong::cut).text;
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
  return text;
}

}  // namespace harness::nccl
