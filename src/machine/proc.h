#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace harness::machine {

// The words of files of /proc and /sys, and what these say of a process. Some containers hide these files,
// others fake them: what cannot be read is empty, what is no number is none. Tree (machine/tree.h) reads them. `root`
// replaces "/" in tests.

/// The next line, taken off `text`, without its end.
std::string_view take_line(std::string_view& text);
/// The next word, taken off `text`; empty at its end.
std::string_view take_word(std::string_view& text);
/// A whole word, if it is a finite number and not below 0.
std::optional<double> number(std::string_view word);
/// The text after "key :" in the style of /proc/cpuinfo and /proc/meminfo; "" if no line begins with the key.
std::string value_of(std::string_view text, std::string_view key);

/// The state that a file of a port of an InfiniBand or RoCE adapter (/sys/class/infiniband) says: "ACTIVE" of "4:
/// ACTIVE".
std::string port_state_in(std::string_view text);
/// The rate of "400 Gb/sec (4X NDR)" in bits per second; NaN if there is none.
double port_rate_in(std::string_view text);

/// The name of this machine; "" if it has none.
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
