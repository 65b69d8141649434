#include "nccl/log_file.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace harness::nccl {

LogFile::LogFile() : folder_("harness-nccl") {
  if (folder_.path().empty()) return;  // no space: then there is no log
  path_ = folder_.path() + "/log";
  ::setenv("NCCL_DEBUG", "INFO", 1);
  ::setenv("NCCL_DEBUG_SUBSYS", "INIT,BOOTSTRAP,ENV,NET,GRAPH,TUNING,REG", 1);
  ::setenv("NCCL_DEBUG_FILE", path_.c_str(), 1);
}

std::string LogFile::take(std::size_t max_bytes) const {
  std::ifstream file(path_, std::ios::binary);
  std::string text(max_bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(std::max<std::streamsize>(file.gcount(), 0));
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
  return text;
}

}  // namespace harness::nccl
