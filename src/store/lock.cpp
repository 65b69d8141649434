#include "store/lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "machine/tree.h"
#include "store/atomic_file.h"

namespace harness::store {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_printable(char c) {
  return c > ' ' && c <= '~';
}

// Makes a word of the line, which is also printed to terminals.
std::string word(std::string text) {
  constexpr std::size_t longest = 100;
  if (text.size() > longest) text.resize(longest);
  std::ranges::replace_if(text, std::not_fn(is_printable), '_');
  return text;
}

// Returns the file that a name leads to, existing or not, so that all names of a result have the same lock.
std::string resolved(const std::string& path) {
  constexpr int most_links = 40;
  std::error_code error;
  fs::path name = path;
  for (int i = 0; i < most_links && fs::is_symlink(name, error); ++i)
    name = name.parent_path() / fs::read_symlink(name, error);
  const fs::path directory = fs::weakly_canonical(directory_of(name), error);
  return error ? path : (fs::absolute(directory) / name.filename()).string();
}

// Names that are too long are cut, so results with such names and the same beginning share a lock.
std::string lock_of(const std::string& path) {
  return beside(path, "", ".lock");
}

struct Found {
  bool is_there = true;
  std::optional<Owner> owner = {};  // nullopt: the lock does not name it

  bool is_of(const std::string& token) const { return owner && owner->token == token; }
  Process process() const { return owner ? process_of(*owner) : Process::unknown; }
};

constexpr int tries_to_read = 10;
void wait_a_moment() {
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

// Reads a lock. One that is just being created has no line for a moment.
Found read_lock(const std::string& lock) {
  constexpr std::size_t most_bytes = 2000;
  for (int i = 0; i < tries_to_read; ++i) {
    const FileText read = try_read_file(lock, most_bytes);
    if (read.missing) return {.is_there = false};
    if (auto owner = parse_owner(read.text)) return {.owner = std::move(owner)};
    wait_a_moment();
  }
  return {};
}

std::string describe(const std::string& lock, const Found& found) {
  if (found.owner) return describe(*found.owner);
  struct stat status {};
  if (::stat(lock.c_str(), &status) != 0) return "a sweep that has just ended";
  return fmt::format("user {}, since {} (the lock does not say more)", status.st_uid,
                     utc_text(static_cast<double>(status.st_mtime)));
}

bool is_stale(const Owner& owner, const Owner& self) {
  const bool same_job = !owner.slurm_job.empty() && owner.slurm_job == self.slurm_job;
  return process_of(owner, self) == Process::gone || (same_job && owner.slurm_restarts < self.slurm_restarts);
}

// Creates a lock. Returns an empty descriptor if there is one already.
Descriptor create(const std::string& path, const std::string& lock, const Owner& self) {
  const std::string line = print_owner(self);
  Descriptor file(open(lock.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file && errno == EEXIST) return file;
  const bool written = file && write(file.number(), line.data(), line.size()) == std::ssize(line);
  if (written && fsync(file.number()) == 0) return file;
  const int error = errno;
  if (file) unlink(lock.c_str());
  fail("{} cannot be written there: creating {} failed: {}", path, lock, std::strerror(error));
}

// Removes a stale lock. Other processes may try the same, so the one that creates the claim, a file named for the stale
// lock's token, does it. As tokens never come back, the lock that it reads then is the stale one until it removes it.
void remove_stale(const std::string& path, const std::string& lock, const Found& stale, const Owner& self) {
  const std::string claim = beside(path, ".", "." + stale.owner->token + ".lock");
  if (!create(path, claim, self)) {
    const Found claimed = read_lock(claim);
    if (claimed.owner && is_stale(*claimed.owner, self)) {
      remove_stale(path, claim, claimed, self);  // of a process that was killed here
    } else {
      wait_a_moment();
    }
    return;
  }
  const bool removed = !read_lock(lock).is_of(stale.owner->token) || unlink(lock.c_str()) == 0 || errno == ENOENT;
  const int error = errno;
  unlink(claim.c_str());
  if (!removed) {
    fail("{} was left by {}, who is gone, and cannot be removed: {}; `rm {}` frees the file", lock,
         describe(lock, stale), std::strerror(error), shell_word(lock));
  }
}

}  // namespace

Owner this_process() {
  Owner owner;
  owner.token = random_token();
  // Not from the user database, which may be on a server that does not answer.
  const std::string user = variable("USER");
  owner.user = user.empty() ? fmt::format("user-{}", geteuid()) : word(user);
  const std::string host = machine::host_name();
  owner.host = word(host.empty() ? "unknown-host" : host);
  owner.boot = word(machine::process_space());
  owner.pid = getpid();
  owner.process_start = std::max<std::int64_t>(0, machine::state_of_process(owner.pid).start_ticks);
  owner.slurm_job = word(variable("SLURM_JOB_ID"));
  owner.slurm_restarts = number_in<std::int64_t>(variable("SLURM_RESTART_COUNT")).value_or(0);
  owner.since = utc_text();
  return owner;
}

std::string print_owner(const Owner& owner) {
  return fmt::format("token={} user={} host={} boot={} pid={} start={} slurm_job={} slurm_restarts={} since={}\n",
                     owner.token, owner.user, owner.host, owner.boot, owner.pid, owner.process_start, owner.slurm_job,
                     owner.slurm_restarts, owner.since);
}

std::optional<Owner> parse_owner(const std::string& line) {
  NameValues words;
  for (const std::string_view text : split(trim(line), ' ')) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || !std::ranges::all_of(text, is_printable)) return std::nullopt;
    words.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  const auto text = [&](const char* name) { return value_of(words, name); };
  const auto number = [&](const char* name) { return number_in<std::int64_t>(text(name)).value_or(0); };
  Owner owner{text("token"), text("user"),    text("host"),      text("boot"),
              number("pid"), number("start"), text("slurm_job"), number("slurm_restarts"),
              text("since")};
  // The token becomes a part of a file's name.
  const bool is_ours = print_owner(owner) == line && !owner.token.empty() &&
                       owner.token.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_ours ? std::optional(owner) : std::nullopt;
}

std::string describe(const Owner& owner) {
  const std::string job = owner.slurm_job.empty() ? "" : ", Slurm job " + owner.slurm_job;
  return fmt::format("{} on {} (process {}{}), since {}", owner.user, owner.host, owner.pid, job, owner.since);
}

Process process_of(const Owner& owner, const Owner& self) {
  if (owner.boot.empty() || owner.boot != self.boot || owner.pid <= 0) return Process::unknown;
  // kill() tells whether a process exists even where /proc hides those of other users.
  if (kill(static_cast<pid_t>(owner.pid), 0) != 0 && errno == ESRCH) return Process::gone;
  const machine::ProcessState found = machine::state_of_process(owner.pid);
  if (found.start_ticks < 0) return Process::unknown;
  return found.start_ticks == owner.process_start && !found.ended ? Process::runs : Process::gone;
}

std::unique_ptr<Lock> Lock::take(const std::string& path, const Owner& self) {
  const std::string result = resolved(path), lock = lock_of(result);
  constexpr int tries = 200;  // ten seconds for another process to remove a stale lock
  for (int i = 0; i < tries; ++i) {
    if (Descriptor file = create(result, lock, self))
      return std::unique_ptr<Lock>(new Lock(result, lock, self, std::move(file)));
    const Found found = read_lock(lock);
    if (!found.is_there) continue;  // released meanwhile
    if (!found.owner || !is_stale(*found.owner, self)) {
      fail(
          "{} is in use by {}: wait until that sweep has ended, or stop it; -o names another file. If it no longer "
          "runs, `rm {}` frees the file",
          result, describe(lock, found), shell_word(lock));
    }
    remove_stale(result, lock, found, self);
  }
  fail("{}: several sweeps want to begin here at once; start one of them again", result);
}

Lock::~Lock() {
  if (read_lock(lock_).is_of(self_.token)) unlink(lock_.c_str());
}

void Lock::require() const {
  const Found found = read_lock(lock_);
  if (found.is_of(self_.token)) return;
  if (found.is_there) fail("{} was taken over by {}: this sweep stops", path_, describe(lock_, found));
  fail("{} was removed or renamed, so {} is no longer this sweep's: it stops; --resume continues the file", lock_,
       path_);
}

Standing standing_of(const std::string& path) {
  const std::string lock = lock_of(resolved(path));
  const Found found = read_lock(lock);
  const Process process = found.process();
  if (process == Process::runs) return {process, "running: " + describe(*found.owner)};
  if (process == Process::gone) return {process, "killed: " + describe(*found.owner)};
  std::string text = "unfinished";
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) text += ", last changed " + utc_text(static_cast<double>(status.st_mtime));
  if (found.is_there) text += ", locked by " + describe(lock, found);
  return {process, text};
}

std::string preparation_of(const std::string& path) {
  const std::string lock = lock_of(resolved(path));
  const Found found = read_lock(lock);
  if (!found.is_there) return "";
  const char* state = found.process() == Process::gone ? "killed in preparation" : "in preparation";
  return fmt::format("; {}: {}", state, describe(lock, found));
}

}  // namespace harness::store
