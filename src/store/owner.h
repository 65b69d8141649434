#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace harness::store {

/// The process that writes a result, as it names itself to others, who want to know whether it still runs.
///
/// Tests let one machine stand for several: HARNESS_TEST_BOOT_ID is the boot that a process says it runs on,
/// HARNESS_TEST_CLOCK_OFFSET_S is added to its clock.
struct Owner {
  std::string host;
  std::string boot;  // of its kernel, and the namespace of its process numbers: only there does `pid` mean anything
  std::int64_t pid = 0;
  std::int64_t process_start = 0;  // ticks since that boot; tells it from a later process of the same number
  std::string user;
  std::string slurm_job;  // "": none
  std::string since;      // UTC, by its own clock
  std::string token;      // of one claim and no other
};

/// This process, now, with a new token.
Owner this_process();
/// 16 random hexadecimal digits.
std::string new_token();
/// The time in UTC by the clock of this process: for people, never to be compared with another's.
std::string own_time();

/// A line "key: value" per field, and a last line "end"; less than owner_bytes.
std::string print_owner(const Owner& owner);
inline constexpr std::size_t owner_bytes = 1000;
/// Nothing unless the text is whole and could have been printed by print_owner().
std::optional<Owner> parse_owner(std::string_view text);

/// "alice on node017 (process 4711, Slurm job 88), since 2026-11-23T20:03:48Z"
std::string describe(const Owner& owner);

enum class Process : std::uint8_t { runs, gone, unknown };
/// What the kernel of this process knows of the owner's. `unknown`: it is another boot's, or the kernel does not tell.
/// A process that is stopped runs.
Process process_of(const Owner& owner);

}  // namespace harness::store
