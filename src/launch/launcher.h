#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace harness {

/// Looks a name up in the environment; nothing when it is unset.
using Lookup = std::function<std::optional<std::string>(const char* name)>;
/// In this process's own environment.
std::optional<std::string> own_environment(const char* name);

/// What the launcher says about this process, by the environment it gave it before MPI starts.
struct LauncherClaim {
  std::string variable;  // the one that says so
  int size = 1, rank = 0;
};
/// Nothing when no launcher is at work.
std::optional<LauncherClaim> launcher_claim(const Lookup& lookup);

/// Throws Error when the launcher started many processes but MPI says that this is the only one: launcher and MPI
/// library do not belong together, and each process would believe to be rank 0 of 1. The message is empty in all
/// processes but the first, so that it is said once.
void check_launch(const std::optional<LauncherClaim>& claim, int mpi_size, const std::string& mpi_library);

/// Seconds between a launcher's SIGTERM and its SIGKILL; 0 when it leaves us the time we need.
double seconds_until_sigkill(const Lookup& lookup);

}  // namespace harness
