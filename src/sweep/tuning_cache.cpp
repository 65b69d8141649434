#include "sweep/tuning_cache.h"

#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "backend/backend.h"
#include "base/error.h"

namespace harness::sweep {
namespace {

namespace fs = std::filesystem;

std::string word_of(const std::string& text) {
  std::string word;
  for (const char c : text) word += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' ? c : '-';
  return word;
}

fs::path folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    return fs::path(cache) / "harness";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return fs::path(home) / ".cache" / "harness";
  return {};
}

}  // namespace

TuningCache::TuningCache(const std::string& device, const std::string& libraries) {
  const fs::path in = folder();
  if (in.empty() || device.empty() || libraries.empty()) return;
  path_ = (in / fmt::format("{}-{}.txt", word_of(device), word_of(libraries))).string();
}

backend::Tuning TuningCache::read() const {
  return path_.empty() ? backend::Tuning{} : backend::read_tuning(path_);
}

std::string TuningCache::write(const backend::Tuning& tuning) const {
  return path_.empty() ? "" : backend::write_tuning(path_, tuning);
}

}  // namespace harness::sweep
