#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace harness::machine {

// How the kernel's text files of /proc and /sys are read, and what they say of a process. Some containers hide them,
// others fake them: what cannot be read is empty, what is no number is none. `root` replaces "/" in tests.

/// A whole file; "" if it cannot be read.
std::string kernel_text(const std::filesystem::path& path);
/// A file's first line, without its end.
std::string first_line(const std::filesystem::path& path);
/// The first word of its first line, as number() reads it.
std::optional<double> number_in(const std::filesystem::path& path);
/// What lies in a folder, sorted; nothing if it cannot be read.
std::vector<std::string> names_in(const std::filesystem::path& folder);

/// The next line, taken off `text`, without its end.
std::string_view take_line(std::string_view& text);
/// The next word, taken off `text`; empty at its end.
std::string_view take_word(std::string_view& text);
/// A whole word, if it is a finite number and not below 0.
std::optional<double> number(std::string_view word);
/// What stands after "key :" in the style of /proc/cpuinfo and /proc/meminfo; "" if no line begins with the key.
std::string value_of(std::string_view text, std::string_view key);

/// Of this machine; "" if it has none.
std::string host_name();

/// The boot of this kernel and the namespace of its process numbers, since containers share a boot: only there does a
/// process number mean anything. "" if the kernel does not tell.
std::string process_space(const std::filesystem::path& root = "/");

struct ProcessState {
  std::int64_t start_ticks = -1;  // since the boot; tells it from a later process of the same number; -1: not known
  bool ended = false;             // only its parent has not asked yet how
};
/// From /proc/PID/stat.
ProcessState process_state(std::string_view proc_pid_stat);
ProcessState state_of_process(std::int64_t pid, const std::filesystem::path& root = "/");

}  // namespace harness::machine
