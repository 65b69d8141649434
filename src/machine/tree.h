#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace harness::machine {

/// The outcome of reading a file. "Absent" and "unreadable" are different results, and neither is a value.
enum class Access : std::uint8_t { read, absent, unreadable };

struct Reading {
  Access access = Access::absent;
  std::string text = {};  // when read
  std::string why = {};   // when unreadable: "permission denied"

  bool ok() const { return access == Access::read; }
  bool unreadable() const { return access == Access::unreadable; }
  bool operator==(const Reading&) const = default;
};

struct Listing {
  Access access = Access::absent;
  std::vector<std::string> names = {};  // sorted
  std::string why = {};

  bool unreadable() const { return access == Access::unreadable; }
};

/// Reads files below a root that may hold anything: a healthy node's /proc and /sys, a broken node's, or a copied
/// folder. Limits bytes, names, the number of accesses, and the time, which is checked between accesses. Reads regular
/// files and folders only, so that no pipe or device can block it, and follows no link out of a root other than "/". A
/// single read may hang in the kernel: the caller must bound it, with a thread. Never throws.
class Tree {
 public:
  struct Limits {
    std::size_t file_bytes = 256 << 10;
    std::size_t names = 16384;  // per folder
    std::size_t looks = 100000;
    double seconds = 2;
  };

  explicit Tree(std::filesystem::path root = "/") : Tree(std::move(root), Limits{}) {}
  Tree(std::filesystem::path root, const Limits& limits);

  bool is_own_machine() const { return root_ == "/"; }

  // Paths are below the root: "sys/class/net".

  /// Reads a whole file. A file longer than file_bytes is unreadable.
  Reading bytes(const std::string& path) const;
  /// Reads at most the first `bytes` bytes of a file.
  Reading head(const std::string& path, std::size_t bytes) const;
  /// Reads the first line, trimmed. A line that is not text is unreadable.
  Reading line(const std::string& path) const;
  /// The entries of a folder.
  Listing names(const std::string& path) const;
  bool exists(const std::string& path) const;
  /// Whether this process may read and write it, also by its control group's device list. Does not open it.
  bool may_use(const std::string& path) const;
  /// Returns its path below the root after following all links: "sys/devices/pci0000:00/0000:00:01.0".
  Reading resolved(const std::string& path) const;

 private:
  /// Returns an empty Descriptor and sets `failure` if it cannot be opened.
  Descriptor open(const std::string& path, int flags, Reading& failure) const;
  Reading take(const std::string& path, std::size_t limit, bool whole) const;

  std::filesystem::path root_;
  Limits limits_;
  Descriptor root_descriptor_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  mutable std::size_t looks_ = 0;
};

// Parsers for files of /proc and /sys, and the state of a process from them. Some containers hide these files, others
// fake them: unreadable text is empty, and what is not a number is nullopt. Tree reads them. `root` replaces "/" in
// tests.

/// Removes the next line from `text` and returns it without its line end.
std::string_view take_line(std::string_view& text);
/// Removes the next word from `text` and returns it; empty at the end of `text`.
std::string_view take_word(std::string_view& text);
/// Parses a whole word as a finite number that is not negative.
std::optional<double> number(std::string_view word);
/// Returns the text after "key :" in the style of /proc/cpuinfo and /proc/meminfo; "" if no line begins with the key.
std::string value_of(std::string_view text, std::string_view key);

/// Returns the state in a port's file of an InfiniBand or RoCE adapter (/sys/class/infiniband): "ACTIVE" of "4:
/// ACTIVE".
std::string port_state_in(std::string_view text);

/// The name of this machine; "" if it has none.
std::string host_name();

/// Identifies the boot of this kernel and the PID namespace (containers share a boot): only within both does a PID mean
/// anything. "" if the kernel does not report them.
std::string process_space(const std::filesystem::path& root = "/");

struct ProcessState {
  std::int64_t start_ticks = -1;  // since boot; distinguishes it from a later process of the same PID; -1: unknown
  bool ended = false;             // a zombie: its parent has not waited for it yet
};
ProcessState state_of_process(std::int64_t pid, const std::filesystem::path& root = "/");

}  // namespace harness::machine
