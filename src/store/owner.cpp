#include "store/owner.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <random>
#include <utility>

#include "base/error.h"
#include "base/identity.h"
#include "machine/proc.h"

namespace harness::store {
namespace {

constexpr std::size_t longest_word = 100;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_clean(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

// What goes into a line of its own, and from there to a terminal.
std::string clean(std::string text) {
  if (text.size() > longest_word) text.resize(longest_word);
  for (char& c : text) c = is_clean({&c, 1}) ? c : '?';
  return text;
}

std::string boot_of_this_kernel() {
  const char* stated = test_hook("HARNESS_TEST_BOOT_ID");
  return clean(stated == nullptr ? machine::process_space() : stated);
}

// Not from the directory of users, which may be a server that does not answer.
std::string own_user() {
  for (const char* name : {"USER", "LOGNAME"}) {
    if (std::string user = variable(name); !user.empty()) return user;
  }
  return "user " + std::to_string(geteuid());
}

bool take_number(std::string_view text, std::int64_t& number) {
  const char* end = text.data() + text.size();
  return std::from_chars(text.data(), end, number) == std::from_chars_result{end, std::errc{}} && number >= 0;
}

}  // namespace

std::string new_token() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", static_cast<std::uint32_t>(device()), static_cast<std::uint32_t>(device()));
}

std::string own_time() {
  const char* offset_s = test_hook("HARNESS_TEST_CLOCK_OFFSET_S");
  const std::time_t now = std::time(nullptr) + (offset_s == nullptr ? 0 : std::atoll(offset_s));
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

Owner this_process() {
  Owner owner;
  const std::string host = machine::host_name();
  owner.host = clean(host.empty() ? "unknown host" : host);
  owner.boot = boot_of_this_kernel();
  owner.pid = getpid();
  owner.process_start = std::max<std::int64_t>(0, machine::state_of_process(owner.pid).start_ticks);
  owner.user = clean(own_user());
  owner.slurm_job = clean(variable("SLURM_JOB_ID"));
  owner.since = own_time();
  owner.token = new_token();
  return owner;
}

std::string print_owner(const Owner& owner) {
  return fmt::format(
      "host: {}\nboot: {}\nprocess: {}\nprocess_start: {}\nuser: {}\nslurm_job: {}\nsince: {}\ntoken: {}\nend\n",
      owner.host, owner.boot, owner.pid, owner.process_start, owner.user, owner.slurm_job, owner.since, owner.token);
}

std::optional<Owner> parse_owner(std::string_view text) {
  Owner owner;
  std::string pid, process_start;
  const std::array<std::pair<std::string_view, std::string*>, 8> lines{{{"host: ", &owner.host},
                                                                        {"boot: ", &owner.boot},
                                                                        {"process: ", &pid},
                                                                        {"process_start: ", &process_start},
                                                                        {"user: ", &owner.user},
                                                                        {"slurm_job: ", &owner.slurm_job},
                                                                        {"since: ", &owner.since},
                                                                        {"token: ", &owner.token}}};
  for (const auto& [key, value] : lines) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos || !text.starts_with(key) || end < key.size()) return std::nullopt;
    *value = text.substr(key.size(), end - key.size());
    if (!is_clean(*value) || value->size() > longest_word) return std::nullopt;
    text.remove_prefix(end + 1);
  }
  const bool is_token =
      owner.token.size() == 16 && owner.token.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (text != "end\n" || !is_token) return std::nullopt;
  if (!take_number(pid, owner.pid) || !take_number(process_start, owner.process_start)) return std::nullopt;
  return owner;
}

std::string describe(const Owner& owner) {
  const std::string job = owner.slurm_job.empty() ? "" : ", Slurm job " + owner.slurm_job;
  return fmt::format("{} on {} (process {}{}), since {}", owner.user, owner.host, owner.pid, job, owner.since);
}

Process process_of(const Owner& owner) {
  if (owner.boot.empty() || owner.boot != boot_of_this_kernel() || owner.pid <= 0) return Process::unknown;
  // Also where /proc hides the processes of others, the kernel says whether there is one.
  if (kill(static_cast<pid_t>(owner.pid), 0) != 0 && errno == ESRCH) return Process::gone;
  const machine::ProcessState found = machine::state_of_process(owner.pid);
  if (found.start_ticks < 0) return Process::unknown;
  return found.start_ticks == owner.process_start && !found.ended ? Process::runs : Process::gone;
}

}  // namespace harness::store
