#include "machine/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <system_error>

#include "base/clock.h"
#include "base/text.h"

namespace harness::machine {
namespace {

Reading failed(int error) {
  if (error == ENOENT || error == ENOTDIR || error == ENODEV || error == ENXIO) return {};
  std::string why = std::strerror(error);
  if (!why.empty()) why[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(why[0])));
  return {Access::unreadable, {}, why};
}

Reading unreadable(std::string why) {
  return {Access::unreadable, {}, std::move(why)};
}

}  // namespace

Tree::Tree(std::filesystem::path root, const Limits& limits) : root_(std::move(root)), limits_(limits) {
  std::error_code ignored;
  if (const auto whole = std::filesystem::canonical(root_, ignored); !ignored) root_ = whole;
  root_descriptor_ = Descriptor(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

Descriptor Tree::open(const std::string& path, int flags, Reading& failure) const {
  if (++looks_ > limits_.looks) {
    failure = unreadable(fmt::format("more than {} files were looked at", limits_.looks));
    return Descriptor();
  }
  if (seconds_since(begin_) > limits_.seconds) {
    failure = unreadable(fmt::format("the {} s for reading were over", limits_.seconds));
    return Descriptor();
  }
  if (!root_descriptor_) {
    failure = unreadable("there is no such folder");
    return Descriptor();
  }
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  // On this machine's own root the kernel made all links. In any other root a link must not lead out of it.
  if (!is_own_machine()) how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  long opened = -1;
  // EAGAIN: a file was renamed somewhere while a ".." of a link was followed; openat2(2) says to try again.
  for (int tries = 0; opened < 0 && tries < 1000; ++tries) {
    opened = is_own_machine() ? ::openat(root_descriptor_.number(), path.c_str(), flags | O_CLOEXEC)
                              : ::syscall(SYS_openat2, root_descriptor_.number(), path.c_str(), &how, sizeof how);
    if (opened < 0 && errno != EAGAIN) break;
  }
  if (opened < 0) failure = failed(errno);
  return Descriptor(static_cast<int>(opened));
}

// Checks the file type before opening for reading, which alone can block or start a device.
Reading Tree::take(const std::string& path, std::size_t limit, bool whole) const {
  Reading failure;
  const Descriptor place = open(path, O_PATH, failure);
  if (!place) return failure;
  struct stat is {};
  if (::fstat(place.number(), &is) != 0) return failed(errno);
  if (!S_ISREG(is.st_mode)) return unreadable("it is no plain file");
  const Descriptor file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, failure);
  if (!file) return failure;
  struct stat opened {};
  if (::fstat(file.number(), &opened) != 0 || !S_ISREG(opened.st_mode)) return unreadable("it is no plain file");
  std::string text;
  if (const int error = read_to_end(file.number(), limit, 0, text); error != 0) return failed(error);
  if (text.size() > limit && whole) return unreadable(fmt::format("it is longer than {} KiB", limit >> 10));
  text.resize(std::min(text.size(), limit));
  return {Access::read, std::move(text), {}};
}

Reading Tree::bytes(const std::string& path) const {
  return take(path, limits_.file_bytes, true);
}

Reading Tree::head(const std::string& path, std::size_t bytes) const {
  return take(path, std::min(bytes, limits_.file_bytes), false);
}

Reading Tree::line(const std::string& path) const {
  constexpr std::size_t longest = 4096;  // what the kernel gives of a page; command lines are as long
  Reading reading = head(path, longest);
  if (!reading.ok()) return reading;
  reading.text = trim(std::string_view(reading.text).substr(0, reading.text.find('\n')));
  const bool is_text =
      std::ranges::all_of(reading.text, [](unsigned char c) { return std::isprint(c) != 0 || c == '\t'; });
  return is_text ? reading : unreadable("it is no text");
}

Listing Tree::names(const std::string& path) const {
  Reading failure;
  Descriptor descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, failure);
  if (!descriptor) return {failure.access, {}, failure.why};
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(descriptor.number()), ::closedir);
  if (!folder) return {Access::unreadable, {}, failed(errno).why};
  descriptor.release();  // closedir() closes it
  Listing listing{Access::read, {}, {}};
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (listing.names.size() == limits_.names) {
      return {Access::unreadable, {}, fmt::format("it has more than {} entries", limits_.names)};
    }
    listing.names.push_back(name);
  }
  std::ranges::sort(listing.names);
  return listing;
}

bool Tree::exists(const std::string& path) const {
  Reading failure;
  return static_cast<bool>(open(path, O_PATH, failure));
}

bool Tree::may_use(const std::string& path) const {
  Reading failure;
  const Descriptor place = open(path, O_PATH, failure);
  return place && ::access(fmt::format("/proc/self/fd/{}", place.number()).c_str(), R_OK | W_OK) == 0;
}

Reading Tree::resolved(const std::string& path) const {
  Reading failure;
  const Descriptor place = open(path, O_PATH, failure);
  if (!place) return failure;
  std::array<char, 4096> target{};
  const ssize_t n =
      ::readlink(fmt::format("/proc/self/fd/{}", place.number()).c_str(), target.data(), target.size() - 1);
  if (n < 0) return failed(errno);
  std::string_view whole(target.data(), static_cast<std::size_t>(n));
  const std::string prefix = is_own_machine() ? "/" : root_.string() + "/";
  if (!whole.starts_with(prefix)) return unreadable("it leads out of the root");
  return {Access::read, std::string(whole.substr(prefix.size())), {}};
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string_view take_word(std::string_view& text) {
  const std::size_t start = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(start);
  const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

std::optional<double> number(std::string_view word) {
  const auto value = number_in<double>(word);
  return value && std::isfinite(*value) && *value >= 0 ? value : std::nullopt;
}

std::string value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string_view::npos) continue;
    return std::string(line.substr(std::min(line.find_first_not_of(" \t", colon + 1), line.size())));
  }
  return "";
}

std::string port_state_in(std::string_view text) {
  const std::size_t colon = text.find(':');
  return std::string(trim(colon == std::string_view::npos ? text : text.substr(colon + 1)));
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string process_space(const std::filesystem::path& root) {
  std::error_code ignored;
  const std::string boot = Tree(root).line("proc/sys/kernel/random/boot_id").text;
  const std::string space = std::filesystem::read_symlink(root / "proc/self/ns/pid", ignored);
  return boot.empty() || space.empty() ? "" : boot + " " + space;
}

// Fields 3 and 22 of /proc/PID/stat. The second field, a name in brackets, may hold anything.
ProcessState state_of_process(std::int64_t pid, const std::filesystem::path& root) {
  const std::string text = Tree(root).bytes("proc/" + std::to_string(pid) + "/stat").text;
  const std::size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return {};
  std::string_view rest = std::string_view(text).substr(end_of_name + 1);
  const std::string_view state = take_word(rest);
  for (int field = 4; field < 22; ++field) take_word(rest);
  const std::optional<double> start = number(take_word(rest));
  if (!start) return {};
  return {static_cast<std::int64_t>(*start), state == "Z" || state == "X"};
}

}  // namespace harness::machine
