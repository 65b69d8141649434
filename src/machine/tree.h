#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
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

}  // namespace harness::machine
