#include "machine/gpus.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "machine/tree.h"

namespace harness::machine {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 6 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

// nvidia0, nvidia1, …; not nvidiactl or nvidia-uvm.
bool is_device(std::string_view name) {
  constexpr std::string_view stem = "nvidia";
  return name.starts_with(stem) && is_number(name.substr(stem.size()));
}

// Where the driver is not the one that lists its GPUs in /proc: Windows' Linux (dxg) and Tegra (nvhost, nvmap).
bool other_driver(const Tree& tree) {
  return std::ranges::any_of(std::initializer_list<const char*>{"dev/dxg", "dev/nvmap", "dev/nvhost-gpu", "dev/nvgpu"},
                             [&](const char* path) { return tree.exists(path); });
}

int gpus_on_node(const Tree& tree) {
  if (other_driver(tree)) return -1;
  // A container may show the whole node's /proc and have device files of its own GPUs alone, or the reverse.
  const std::ptrdiff_t listed = std::ssize(tree.names("proc/driver/nvidia/gpus").names);
  const std::ptrdiff_t devices = std::ranges::count_if(tree.names("dev").names, is_device);
  return static_cast<int>(listed > 0 && devices > 0 ? std::min(listed, devices) : std::max(listed, devices));
}

// As CUDA reads CUDA_VISIBLE_DEVICES: up to the first entry that is no device.
std::vector<std::string> visible_names(std::string_view text, int on_node) {
  std::vector<std::string> names;
  for (std::string_view name : split(text, ',')) {
    name = trim(name);
    const bool by_id = name.starts_with("GPU-") || name.starts_with("MIG-");
    if (!by_id && (!is_number(name) || std::stoi(std::string(name)) >= on_node)) break;
    names.emplace_back(name);
  }
  return names;
}

}  // namespace

GpuView find_gpus(const GpuEnvironment& environment, const std::filesystem::path& root) {
  GpuView view;
  view.on_node = gpus_on_node(Tree(root));
  if (view.on_node < 0) return view;
  if (environment.restricted) {
    view.names = visible_names(environment.visible, view.on_node);
    if (!environment.own_task.empty() && view.names.size() == 1 && is_number(view.names[0])) {
      view.names[0] += " of task " + environment.own_task;
    }
  } else {
    for (int i = 0; i < view.on_node; ++i) view.names.push_back(std::to_string(i));
  }
  view.count = static_cast<int>(view.names.size());
  return view;
}

}  // namespace harness::machine
