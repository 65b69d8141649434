#pragma once

#include <cstddef>
#include <string>

#include "base/file.h"

namespace harness::nccl {

/// NCCL's own log of this process. NCCL decides at its first line what it logs and where, so this comes before its
/// first call and holds for the life of the process: it sets NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE.
class LogFile {
 public:
  LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// The text written so far: its first `max_bytes` bytes. Removes the file; NCCL may still write to it.
  std::string take(std::size_t max_bytes) const;

 private:
  PrivateFolder folder_;
  std::string path_;
};

}  // namespace harness::nccl
