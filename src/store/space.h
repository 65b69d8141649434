#pragma once

#include <cstdint>
#include <string>

#include "base/file.h"
#include "store/result_file.h"

namespace harness::store {

/// At least as many bytes as a file of this plan and capacity has, whatever its texts turn out to be.
std::int64_t most_bytes(const Result& plan, const ResultCapacity& capacity);

/// Space on the disk beside `path`, in a file without a name, so that it is free again when it is closed, by whatever
/// end of the process.
class Space {
 public:
  /// Throws Error, which says how much is needed, if nothing can be written beside `path`.
  Space(const std::string& path, std::int64_t bytes);
  /// Throws Error if there is not enough.
  void allocate();
  /// For the file that it was kept for.
  void give_back() { file_ = Descriptor(); }

 private:
  [[noreturn]] void refuse(int error) const;
  std::string path_;
  std::int64_t bytes_;
  Descriptor file_;
};

}  // namespace harness::store
