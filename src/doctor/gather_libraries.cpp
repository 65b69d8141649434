// Which files the dynamic linker finds for NCCL and what NCCL loads itself.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "doctor/gather.h"
#include "machine/proc.h"

namespace harness::doctor {
namespace {

using machine::Access;
using machine::Tree;

constexpr std::size_t most_folders = 256;

// The folders of a configuration of ldconfig, a line each. Other lines than "include …" and comments are folders.
void add_folders_of(const Tree& tree, const std::string& path, std::vector<std::string>& folders) {
  const machine::Reading file = tree.bytes(path);
  std::string_view rest = file.text;
  while (!rest.empty()) {
    const std::string_view line = trim(machine::take_line(rest));
    if (line.starts_with('/')) folders.emplace_back(line);
  }
}

}  // namespace

std::vector<std::string> library_folders(const Tree& tree, std::string_view search_path) {
  std::vector<std::string> folders;
  for (const std::string_view folder : split(search_path, ':')) {
    if (folder.starts_with('/')) folders.emplace_back(folder);
  }
  add_folders_of(tree, "etc/ld.so.conf", folders);
  for (const std::string& name : tree.names("etc/ld.so.conf.d").names) {
    if (name.ends_with(".conf")) add_folders_of(tree, "etc/ld.so.conf.d/" + name, folders);
  }
  for (const char* folder : {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
                             "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"}) {
    folders.emplace_back(folder);
  }
  folders.resize(std::min(folders.size(), most_folders));
  return folders;
}

void gather_libraries(const Tree& tree, Facts& facts) {
  const char* const path = tree.is_own_machine() ? std::getenv("LD_LIBRARY_PATH") : nullptr;
  std::map<std::string, std::vector<std::string>> found;  // by the name that is asked for: where links lead
  for (const std::string& folder : library_folders(tree, path == nullptr ? "" : path)) {
    const std::string below = folder.substr(1);
    const machine::Listing names = tree.names(below);
    if (names.access == Access::unreadable) facts.set_unreadable("library", fmt::format("{}: {}", folder, names.why));
    for (const std::string& name : names.names) {
      const bool is_plugin = name.starts_with("libnccl-net") && name.ends_with(".so");
      if (!is_plugin && name != "libnccl.so.2") continue;
      const machine::Reading place = tree.resolved(fmt::format("{}/{}", below, name));
      if (!place.ok()) continue;  // a link that leads nowhere
      std::vector<std::string>& places = found[name];
      const std::string whole = "/" + place.text;
      if (std::ranges::find(places, whole) == places.end()) places.push_back(whole);
    }
  }
  for (const auto& [name, places] : found) facts.set("library/" + name, join(places, ", "));
}

}  // namespace harness::doctor
