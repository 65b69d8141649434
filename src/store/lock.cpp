#include "store/lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "machine/tree.h"
#include "store/atomic_file.h"

namespace harness::store {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_word = 100;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A word of the line, which also goes to terminals.
std::string word(std::string text) {
  if (text.size() > longest_word) text.resize(longest_word);
  std::ranges::replace_if(
      text, [](char c) { return c <= ' ' || c > '~'; }, '_');
  return text;
}

// Not from the directory of users, which may be a server that does not answer.
std::string own_user() {
  for (const char* name : {"USER", "LOGNAME"}) {
    if (std::string user = variable(name); !user.empty()) return user;
  }
  return fmt::format("user-{}", geteuid());
}

std::optional<std::int64_t> count_in(std::string_view text) {
  const auto number = number_in<std::int64_t>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

// The file that a name leads to, there or not, so that all names of one result meet the same lock.
std::string resolved(const std::string& path) {
  constexpr int most_links = 40;
  std::error_code error;
  fs::path name = path;
  for (int i = 0; i < most_links && fs::is_symlink(name, error); ++i)
    name = name.parent_path() / fs::read_symlink(name, error);
  const fs::path directory = fs::weakly_canonical(directory_of(name), error);
  return error ? path : (fs::absolute(directory) / name.filename()).string();
}

// Names that are too long are cut; results of so long a name that begin alike share a lock.
std::string lock_of(const std::string& path) {
  return beside(path, "", ".lock");
}

struct Found {
  std::optional<Owner> owner;  // nothing: the lock does not say it

  bool is_of(const std::string& token) const { return owner && owner->token == token; }
  Process process() const { return owner ? process_of(*owner) : Process::unknown; }
};

// Nothing: there is no lock. One that is just being created has no line for a moment.
std::optional<Found> read_lock(const std::string& lock) {
  constexpr int tries = 10;
  for (int i = 0; i < tries; ++i) {
    const FileText read = try_read_file(lock, 2000);
    if (read.missing) return std::nullopt;
    if (auto owner = parse_owner(read.text)) return Found{std::move(owner)};
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return Found{};
}

std::string describe(const std::string& lock, const Found& found) {
  if (found.owner) return describe(*found.owner);
  struct stat status {};
  if (::stat(lock.c_str(), &status) != 0) return "a sweep that has just ended";
  return fmt::format("user {}, since {} (the lock does not say more)", status.st_uid,
                     utc_text(static_cast<double>(status.st_mtime)));
}

[[noreturn]] void refuse(const std::string& path, const std::string& lock, const Found& found) {
  fail(
      "{} is in use by {}: wait until that sweep has ended, or stop it; -o names another file. If it no longer runs, "
      "`rm {}` frees the file",
      path, describe(lock, found), shell_word(lock));
}

bool is_stale(const Owner& owner, const Owner& self) {
  const bool same_job = !owner.slurm_job.empty() && owner.slurm_job == self.slurm_job;
  return process_of(owner, self) == Process::gone || (same_job && owner.slurm_restarts < self.slurm_restarts);
}

// A new file of one line, on the disk. An empty descriptor: there is one of this name.
Descriptor write_new(const std::string& name, const std::string& line, const std::string& path) {
  Descriptor file(open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file && errno == EEXIST) return file;
  if (!file) fail("{} cannot be written there: creating {} failed: {}", path, name, std::strerror(errno));
  if (write(file.number(), line.data(), line.size()) == static_cast<ssize_t>(line.size()) && fsync(file.number()) == 0)
    return file;
  const int error = errno;
  unlink(name.c_str());
  fail("{} cannot be written there: writing {} failed: {}", path, name, std::strerror(error));
}

// An empty descriptor: there is a lock. It appears with its line, by a second name of a file that is removed again;
// only where there are no hard links, a kill can leave a lock that does not say whose it is.
Descriptor create(const std::string& path, const std::string& lock, const Owner& self) {
  const std::string line = print_owner(self), own = temporary_name(path);
  Descriptor file = write_new(own, line, path);
  const int error = link(own.c_str(), lock.c_str()) == 0 ? 0 : errno;
  unlink(own.c_str());
  if (error == 0) return file;
  return error == EEXIST ? Descriptor() : write_new(lock, line, path);
}

// Others may be at it too, so it is first moved to a name of one's own, where nobody else can touch it. If that was not
// the stale lock but one that another has created meanwhile, it is put back.
void remove_stale(const std::string& path, const std::string& lock, const Found& stale, const Owner& self) {
  const std::string own = beside(path, ".", "." + self.token + ".lock");
  if (std::rename(lock.c_str(), own.c_str()) != 0) {
    if (errno == ENOENT) return;
    fail("{} was left by {}, who is gone, and cannot be removed: {}; `rm {}` frees the file", lock,
         describe(lock, stale), std::strerror(errno), shell_word(lock));
  }
  const auto moved = read_lock(own);
  const bool is_it = moved && moved->is_of(stale.owner->token);
  if (!is_it && link(own.c_str(), lock.c_str()) != 0 && errno != EEXIST) std::rename(own.c_str(), lock.c_str());
  unlink(own.c_str());
}

}  // namespace

Owner this_process() {
  Owner owner;
  std::random_device device;
  const auto random = [&] { return static_cast<std::uint32_t>(device()); };
  owner.token = fmt::format("{:08x}", random());
  owner.token += fmt::format("{:08x}", random());
  owner.user = word(own_user());
  const std::string host = machine::host_name();
  owner.host = word(host.empty() ? "unknown-host" : host);
  owner.boot = word(machine::process_space());
  owner.pid = getpid();
  owner.process_start = std::max<std::int64_t>(0, machine::state_of_process(owner.pid).start_ticks);
  owner.slurm_job = word(variable("SLURM_JOB_ID"));
  owner.slurm_restarts = count_in(variable("SLURM_RESTART_COUNT")).value_or(0);
  owner.since = utc_text();
  return owner;
}

std::string print_owner(const Owner& owner) {
  return fmt::format("token={} user={} host={} boot={} pid={} start={} slurm_job={} slurm_restarts={} since={}\n",
                     owner.token, owner.user, owner.host, owner.boot, owner.pid, owner.process_start, owner.slurm_job,
                     owner.slurm_restarts, owner.since);
}

std::optional<Owner> parse_owner(const std::string& line) {
  static constexpr std::array<std::string_view, 9> keys{
      "token=", "user=", "host=", "boot=", "pid=", "start=", "slurm_job=", "slurm_restarts=", "since="};
  if (!line.ends_with('\n')) return std::nullopt;
  const auto words = split(std::string_view(line).substr(0, line.size() - 1), ' ');
  if (words.size() != keys.size()) return std::nullopt;
  std::array<std::string, 9> values;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!words[i].starts_with(keys[i])) return std::nullopt;
    values[i] = words[i].substr(keys[i].size());
    if (values[i] != word(values[i])) return std::nullopt;
  }
  const auto pid = count_in(values[4]), start = count_in(values[5]), restarts = count_in(values[7]);
  if (values[0].size() != 16 || !pid || !start || !restarts) return std::nullopt;
  return Owner{values[0], values[1], values[2], values[3], *pid, *start, values[6], *restarts, values[8]};
}

std::string describe(const Owner& owner) {
  const std::string job = owner.slurm_job.empty() ? "" : ", Slurm job " + owner.slurm_job;
  return fmt::format("{} on {} (process {}{}), since {}", owner.user, owner.host, owner.pid, job, owner.since);
}

Process process_of(const Owner& owner, const Owner& self) {
  if (owner.boot.empty() || owner.boot != self.boot || owner.pid <= 0) return Process::unknown;
  // Also where /proc hides the processes of others, the kernel says whether there is one.
  if (kill(static_cast<pid_t>(owner.pid), 0) != 0 && errno == ESRCH) return Process::gone;
  const machine::ProcessState found = machine::state_of_process(owner.pid);
  if (found.start_ticks < 0) return Process::unknown;
  return found.start_ticks == owner.process_start && !found.ended ? Process::runs : Process::gone;
}

std::unique_ptr<Lock> Lock::take(const std::string& path, const Owner& self) {
  const std::string result = resolved(path), lock = lock_of(result);
  constexpr int tries = 20;
  for (int i = 0; i < tries; ++i) {
    if (Descriptor file = create(result, lock, self))
      return std::unique_ptr<Lock>(new Lock(result, self, std::move(file)));
    const auto found = read_lock(lock);
    if (!found) continue;  // released since
    if (!found->owner || !is_stale(*found->owner, self)) refuse(result, lock, *found);
    remove_stale(result, lock, *found, self);
  }
  fail("{}: several sweeps want to begin here at once; start one of them again", result);
}

Lock::~Lock() {
  const std::string lock = lock_of(path_);
  const auto found = read_lock(lock);
  if (found && found->is_of(self_.token)) unlink(lock.c_str());
}

void Lock::require() const {
  const std::string lock = lock_of(path_);
  constexpr int tries = 10;  // whoever has moved it by mistake puts it back at once
  for (int i = 0; i < tries; ++i) {
    const auto found = read_lock(lock);
    if (found && found->is_of(self_.token)) return;
    if (found) fail("{} was taken over by {}: this sweep stops", path_, describe(lock, *found));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  fail("{} was removed or renamed, so {} is no longer this sweep's: it stops; --resume continues the file", lock,
       path_);
}

Standing standing_of(const std::string& path) {
  struct stat status {};
  const std::string changed =
      ::stat(path.c_str(), &status) == 0 ? ", last changed " + utc_text(static_cast<double>(status.st_mtime)) : "";
  const std::string lock = lock_of(resolved(path));
  const auto found = read_lock(lock);
  if (!found) return {Process::unknown, "unfinished" + changed};
  const Process process = found->process();
  if (process == Process::runs) return {process, "running: " + describe(*found->owner)};
  if (process == Process::gone) return {process, "killed: " + describe(*found->owner)};
  return {Process::unknown, fmt::format("unfinished{}, locked by {}", changed, describe(lock, *found))};
}

std::string preparation_of(const std::string& path) {
  const std::string lock = lock_of(resolved(path));
  const auto found = read_lock(lock);
  if (!found) return "";
  const Process process = found->process();
  const std::string who = describe(lock, *found);
  if (process == Process::runs) return " yet; in preparation: " + who;
  return process == Process::gone ? "; killed in preparation: " + who : "; in preparation: " + who;
}

}  // namespace harness::store
