#include "job/mpi/process.h"

#include <sys/wait.h>

#include <cstring>

#include "base/error.h"

namespace harness::mpi {
namespace {

// As exec takes them: valid as long as `texts` is.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

pid_t spawn(const std::string& what, const std::string& path, std::vector<std::string> words,
            const NameValues& environment, const posix_spawn_file_actions_t& files,
            const posix_spawnattr_t* attributes) {
  std::vector<std::string> lines;
  lines.reserve(environment.size());
  for (const auto& [name, value] : environment) lines.push_back(fmt::format("{}={}", name, value));
  pid_t child = -1;
  const int error =
      ::posix_spawn(&child, path.c_str(), &files, attributes, pointers_to(words).data(), pointers_to(lines).data());
  if (error != 0) fail("cannot start {}: {}", what, std::strerror(error));
  return child;
}

std::optional<ProcessEnd> end_of(pid_t child) {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != child)
    return std::nullopt;
  ProcessEnd end;
  (info.si_code == CLD_EXITED ? end.exit_code : end.signal) = info.si_status;
  return end;
}

}  // namespace harness::mpi
