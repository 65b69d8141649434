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

/// The outcome of a look at a file. "It is not there" and "it cannot be read" are different answers, and neither is a
/// value.
enum class Access : std::uint8_t { read, absent, unreadable };

struct Reading {
  Access access = Access::absent;
  std::string text = {};  // when read
  std::string why = {};   // when unreadable: "permission denied"

  bool ok() const { return access == Access::read; }
  bool operator==(const Reading&) const = default;
};

struct Listing {
  Access access = Access::absent;
  std::vector<std::string> names = {};  // sorted
  std::string why = {};
};

/// The files below a root that may hold anything: a healthy node's /proc and /sys, a broken one's, a folder that
/// somebody sent. Every look is bounded: in bytes, in names, in the number of looks, in time between looks. It opens
/// nothing that is no plain file, so that no pipe or device can hold it up, and follows no link out of a root other
/// than "/". A single read that the kernel does not end is the caller's to bound, by a thread. Nothing here throws.
class Tree {
 public:
  struct Limits {
    std::size_t file_bytes = 256 << 10;
    std::size_t names = 16384;  // of a folder
    std::size_t looks = 100000;
    double seconds = 2;
  };

  explicit Tree(std::filesystem::path root = "/") : Tree(std::move(root), Limits{}) {}
  Tree(std::filesystem::path root, const Limits& limits);

  bool is_own_machine() const { return root_ == "/"; }

  // Paths are below the root: "sys/class/net".

  /// All of a file, as bytes. One longer than file_bytes is unreadable.
  Reading bytes(const std::string& path) const;
  /// No more than the first bytes of a file.
  Reading head(const std::string& path, std::size_t bytes) const;
  /// Its first line without blanks at its ends; what is no text is unreadable.
  Reading line(const std::string& path) const;
  /// The entries of a folder.
  Listing names(const std::string& path) const;
  bool exists(const std::string& path) const;
  /// Whether this process may read and write it, a control group's list of devices included. It is not opened.
  bool may_use(const std::string& path) const;
  /// Where it leads when all links are followed, below the root: "sys/devices/pci0000:00/0000:00:01.0".
  Reading resolved(const std::string& path) const;

 private:
  /// None, and the reading that says why, where it cannot be opened.
  Descriptor open(const std::string& path, int flags, Reading& failure) const;
  Reading take(const std::string& path, std::size_t limit, bool whole) const;

  std::filesystem::path root_;
  Limits limits_;
  Descriptor root_descriptor_;
  std::chrono::steady_clock::time_point end_;
  mutable std::size_t looks_ = 0;
};

// The words of files of /proc and /sys, and what these say of a process. Some containers hide these files,
// others fake them: what cannot be read is empty, what is no number is none. Tree reads them. `root`
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

/// The name of this machine; "" if it has none.
std::string host_name();

/// The boot of this kernel and the namespace of its process numbers, since containers share a boot: only there does a
/// process number mean anything. "" if the kernel does not tell.
std::string process_space(const std::filesystem::path& root = "/");

struct ProcessState {
  std::int64_t start_ticks = -1;  // since the boot; tells it from a later process of the same number; -1: not known
  bool ended = false;             // only its parent has not asked yet how
};
ProcessState state_of_process(std::int64_t pid, const std::filesystem::path& root = "/");

}  // namespace harness::machine
