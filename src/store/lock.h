#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/file.h"

// One sweep at a time writes a result FILE: the one that created FILE.lock beside it. The lock is one line of text that
// says who that is. It needs no file locks of the system (NFS, Lustre) and compares no clocks.
namespace harness::store {

/// The process that holds a lock.
struct Owner {
  std::string token;  // 16 random hexadecimal digits, of one lock and no other
  std::string user, host;
  std::string boot;  // of its kernel, and the namespace of its process numbers: only there does `pid` mean anything
  std::int64_t pid = 0, process_start = 0;  // ticks since that boot; tells it from a later process of the same number
  std::string slurm_job;                    // "": none
  std::int64_t slurm_restarts = 0;          // how many times Slurm has requeued that job
  std::string since;                        // UTC, by its own clock
};

/// This process, now, with a new token.
Owner this_process();
/// The line of a lock, with its end, and the reverse: nothing unless the text is exactly such a line.
std::string print_owner(const Owner& owner);
std::optional<Owner> parse_owner(const std::string& line);
/// "alice on node017 (process 4711, Slurm job 88), since 2026-11-23T20:03:48Z"
std::string describe(const Owner& owner);

enum class Process : std::uint8_t { runs, gone, unknown };
/// Asks the kernel of `self` for the owner's process. `unknown`: it belongs to another boot or namespace, or the
/// kernel does not tell. A process that is stopped runs.
Process process_of(const Owner& owner, const Owner& self = this_process());

/// The right to write one result.
class Lock {
 public:
  /// Locks the result that `path` names, whatever links lead to it. A lock whose process is gone (on this boot), or
  /// which an earlier start of this Slurm job left, is taken over: of several that try, one succeeds. Throws Error if
  /// the result is in use, naming the owner and the command that frees it, or if no lock can be created there.
  static std::unique_ptr<Lock> take(const std::string& path, const Owner& self = this_process());
  /// Releases it, unless another process holds it by now. A killed process leaves it.
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  /// The path of the result: absolute, and without links.
  const std::string& path() const { return path_; }
  /// Reads the lock afresh. Throws Error, which says who has taken it over, if it is no longer this one's.
  void require() const;

 private:
  Lock(std::string path, std::string lock, Owner self, Descriptor file)
      : path_(std::move(path)), lock_(std::move(lock)), self_(std::move(self)), file_(std::move(file)) {}

  std::string path_, lock_;
  Owner self_;
  Descriptor file_;  // open as long as it is held, so that lsof shows the process
};

struct Standing {
  Process writer = Process::unknown;
  std::string text;
};
/// Says of an unfinished result, by its lock, "running: OWNER" or "killed: OWNER", where this machine can know it;
/// else "unfinished", with what the lock says and when the file last changed.
Standing standing_of(const std::string& path);
/// Says of a path without a result "; in preparation: OWNER" or "; killed in preparation: OWNER" if there is a lock,
/// else "".
std::string preparation_of(const std::string& path);

}  // namespace harness::store
