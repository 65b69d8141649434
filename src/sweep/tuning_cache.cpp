#include "sweep/tuning_cache.h"

#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace harness::sweep {
namespace {

namespace fs = std::filesystem;

constexpr const char* heading = "harness tuning 1";

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

TuningCache::TuningCache(const std::string& device, const std::string& library_version) {
  const fs::path in = folder();
  if (in.empty() || device.empty() || library_version.empty()) return;
  path_ = (in / fmt::format("{}-cublaslt-{}.txt", word_of(device), word_of(library_version))).string();
}

backend::Tuning TuningCache::read() const {
  backend::Tuning tuning;
  std::ifstream file(path_);
  std::string line;
  if (!std::getline(file, line) || line != heading) return {};
  while (std::getline(file, line)) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos || tab == 0 || tab + 1 == line.size())
      return {};  // half written: none of it is trusted
    tuning[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return tuning;
}

std::string TuningCache::write(const backend::Tuning& tuning) const {
  if (path_.empty()) return "";
  const auto problem_text = [&](const std::string& why) {
    return fmt::format("cannot save the tuned choices in {} ({}): the next sweep tunes again", path_, why);
  };
  std::error_code problem;
  fs::create_directories(fs::path(path_).parent_path(), problem);
  if (problem) return problem_text(problem.message());
  const std::string part = fmt::format("{}.{}.part", path_, ::getpid());
  {
    std::ofstream file(part);
    file << heading << "\n";
    for (const auto& [key, value] : tuning) file << key << "\t" << value << "\n";
    file.flush();
    if (!file) return problem_text("writing failed");
  }
  fs::rename(part, path_, problem);
  return problem ? problem_text(problem.message()) : "";
}

}  // namespace harness::sweep
