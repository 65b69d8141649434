#pragma once

#include <optional>

#include "job/mpi/guest_link.h"
#include "job/mpi/process.h"

namespace harness::mpi {

/// How a guest knows that it is one: this variable names the descriptor of its end of the link.
inline constexpr const char* guest_variable = "HARNESS_GUEST";
inline constexpr int guest_descriptor = 3;

/// A guest as its host sees it: this program once more, with the same arguments, in the same process group, so that
/// what a launcher sends to the host's reaches it too. It may use all CPUs that the host may be bound to: what the
/// launcher bound one process to was not meant for several. It writes to the host's standard error, and its standard
/// output is nobody's.
class GuestProcess {
 public:
  /// Throws Error if the system refuses.
  GuestProcess();
  /// Kills it, without waiting.
  ~GuestProcess();
  GuestProcess(const GuestProcess&) = delete;
  GuestProcess& operator=(const GuestProcess&) = delete;

  GuestLink& link() { return *link_; }
  /// Waits at most this long for its end, and reaps it.
  std::optional<ProcessEnd> wait(double longest_s);
  void kill();

 private:
  std::optional<GuestLink> link_;
  pid_t pid_ = -1;
  std::optional<ProcessEnd> end_;
};

}  // namespace harness::mpi
