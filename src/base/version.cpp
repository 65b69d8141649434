#include "base/version.h"

#include "git_describe.h"  // written by the build

namespace harness {

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

}  // namespace harness
