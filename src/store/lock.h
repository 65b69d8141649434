#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/file.h"

// Only one sweep at a time writes a result FILE: the one that created FILE.lock beside it. The lock is one line of text
// that names its owner. It needs no file locks of the system (NFS, Lustre) and compares no clocks.
namespace harness::store {

/// The process that holds a lock.
struct Owner {
  std::string token;  // 16 random hexadecimal digits, unique to this lock
  std::string user, host;
  std::string boot;                         // boot of its kernel, and PID namespace: `pid` is only meaningful there
  std::int64_t pid = 0, process_start = 0;  // start in ticks since boot, to detect a reused pid
  std::string slurm_job;                    // "": none
  std::int64_t slurm_restarts = 0;          // how often Slurm has requeued that job
  std::string since;                        // UTC, by the clock of its host
};

/// This process, now, with a new token.
Owner this_process();
/// Prints the line of a lock, with its line end, and parses it; nullopt unless the text is exactly such a line.
std::string print_owner(const Owner& owner);
std::optional<Owner> parse_owner(const std::string& line);
/// "alice on node017 (process 4711, Slurm job 88), since 2026-11-23T20:03:48Z"
std::string describe(const Owner& owner);

enum class Process : std::uint8_t { runs, gone, unknown };
/// Asks the kernel of `self` about the owner's process. `unknown`: it belongs to another boot or namespace, or the
/// kernel does not tell. A stopped process counts as running.
Process process_of(const Owner& owner, const Owner& self = this_process());

/// The right to write one result.
class Lock {
 public:
  /// Locks the result that `path` names, through any links. Takes over a lock whose process is gone (on this boot) or
  /// that an earlier start of this Slurm job left; of several processes that try, one succeeds. Throws Error if the
  /// result is in use, naming the owner and the command that frees it, or if no lock can be created there.
  static std::unique_ptr<Lock> take(const std::string& path, const Owner& self = this_process());
  /// Releases the lock, unless another process holds it by now. A killed process leaves its lock behind.
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  /// The absolute path of the result, with links resolved.
  const std::string& path() const { return path_; }
  /// Rereads the lock. Throws Error, naming the new owner, if this process has lost it.
  void require() const;

 private:
  Lock(std::string path, std::string lock, Owner self, Descriptor file)
      : path_(std::move(path)), lock_(std::move(lock)), self_(std::move(self)), file_(std::move(file)) {}

  std::string path_, lock_;
  Owner self_;
  Descriptor file_;  // open while held, so that lsof shows the process
};

struct Standing {
  Process writer = Process::unknown;
  std::string text;
};
/// Describes an unfinished result by its lock: "running: OWNER" or "killed: OWNER" where this machine can tell, else
/// "unfinished", with the contents of the lock and the time of the file's last change.
Standing standing_of(const std::string& path);
/// Describes a path without a result: "; in preparation: OWNER" or "; killed in preparation: OWNER" if there is a lock,
/// else "".
std::string preparation_of(const std::string& path);

}  // namespace harness::store
