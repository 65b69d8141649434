#include "backend/backend.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/file.h"

namespace harness::backend {
namespace {

namespace fs = std::filesystem;

constexpr const char* heading = "harness tuning 3";  // another number when the tuner finds other choices than before

}  // namespace

Tuning read_tuning(const std::string& path) {
  Tuning tuning;
  constexpr std::size_t most_bytes = 16 << 20;
  std::istringstream file(try_read_file(path, most_bytes).text);
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

std::string write_tuning(const std::string& path, const Tuning& tuning) {
  const auto problem_text = [&](const std::string& why) {
    return fmt::format("cannot save the tuned choices in {} ({}): the next run tunes again", path, why);
  };
  std::error_code problem;
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, problem);
  if (problem) return problem_text(problem.message());
  const std::string part = fmt::format("{}.{}.part", path, ::getpid());
  {
    std::ofstream file(part);
    file << heading << "\n";
    for (const auto& [key, value] : tuning) file << key << "\t" << value << "\n";
    file.flush();
    if (!file) return problem_text("writing failed");
  }
  fs::rename(part, path, problem);
  return problem ? problem_text(problem.message()) : "";
}

}  // namespace harness::backend
