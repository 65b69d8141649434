#include "base/identity.h"

#include <cerrno>
#include <cstdlib>

#include "base/text.h"
#include "git_describe.h"  // written by the build

namespace harness {
namespace {

bool allowed = false;

}  // namespace

void allow_test_hooks() {
  allowed = true;
}

const char* test_hook(const char* name) {
  return allowed ? std::getenv(name) : nullptr;
}

std::string tool_version() {
  return HARNESS_VERSION " (git " HARNESS_GIT ")";
}

std::vector<std::pair<std::string, std::string>> build_identity() {
  std::vector<std::pair<std::string, std::string>> id{
      {"harness", tool_version()}, {"compiler", HARNESS_COMPILER}, {"build_type", HARNESS_BUILD_TYPE}};
#ifdef __SANITIZE_ADDRESS__
  id.emplace_back("sanitizer", "address: timings mean nothing");
#endif
  return id;
}

std::string called() {
  const char* by_launcher = std::getenv("HARNESS_CALLED");
  return shell_word(by_launcher != nullptr && *by_launcher != '\0' ? by_launcher : program_invocation_name);
}

}  // namespace harness
