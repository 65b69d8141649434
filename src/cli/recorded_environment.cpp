#include "cli/recorded_environment.h"

#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/environment.h"

namespace harness::cli {
namespace {

bool is_own(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && status.st_uid == ::geteuid();
}

}  // namespace

std::string foreign_code_in(const plan::Plan& plan, const std::string& path, bool trusted) {
  constexpr std::size_t most_shown = 5;
  std::set<std::string> found;
  for (const plan::PlannedCase& c : plan.cases) {
    for (const auto& [name, value] : c.settings.env) {
      if (config::runs_foreign_code(name)) found.insert(fmt::format("{}={}", name, value));
    }
  }
  if (found.empty()) return "";
  const std::string names = join_first(std::vector<std::string>(found.begin(), found.end()), most_shown);
  if (!trusted && !is_own(path)) {
    fail(
        "{} belongs to another user, and its env makes the workers run code that lies elsewhere ({}): look at it, then "
        "give --trust-file",
        path, names);
  }
  return fmt::format("the env of {} makes the workers run code that lies elsewhere: {}", path, names);
}

}  // namespace harness::cli
