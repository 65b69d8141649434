#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/text.h"

namespace harness::mpi {

/// How a process ended.
struct ProcessEnd {
  int signal = 0;  // it was killed by, 0 if it exited
  int exit_code = 0;
};

/// Starts a program. Throws Error if the system refuses, with `what` it was to be: "a worker".
pid_t spawn(const std::string& what, const std::string& path, std::vector<std::string> words,
            const NameValues& environment, const posix_spawn_file_actions_t& files,
            const posix_spawnattr_t* attributes);

/// How a child of this process ended, once it has. It stays unreaped: until waitpid() nobody else can get its number,
/// so that a kill() cannot hit a stranger.
std::optional<ProcessEnd> end_of(pid_t child);

}  // namespace harness::mpi
