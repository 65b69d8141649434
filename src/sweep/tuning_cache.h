#pragma once

#include <string>

#include "backend/backend.h"

namespace harness {

/// Tuned choices kept between sweeps, in one text file per kind of GPU and version of the library that they are of:
/// $XDG_CACHE_HOME/harness (else ~/.cache/harness). A line per choice, key and value separated by a tab. The cache is a
/// convenience: what cannot be read is tuned again.
class TuningCache {
 public:
  TuningCache(const std::string& device, const std::string& library_version);
  /// Empty if there is none, or none that can be read.
  Tuning read() const;
  /// "" or why it could not be written. Replaces the file as a whole.
  std::string write(const Tuning& tuning) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace harness
