#include "doctor/gather.h"

#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "job/environment.h"
#include "machine/cpus.h"
#include "machine/tree.h"

namespace harness::doctor {
namespace {

// The facts that a thread has found so far. It may outlive whoever waits for it, so it owns all that it uses.
struct Progress {
  std::mutex mutex;
  std::condition_variable changed;
  Facts facts;
  std::string stage = "the kernel's files";
  bool done = false;

  void add(const Facts& more, const std::string& next) {
    const std::lock_guard lock(mutex);
    facts.merge(more);
    stage = next;
  }
};

void gather(const std::string& root, const AskGpus& ask_gpus, double limit_s, Progress& progress) {
  machine::Tree::Limits limits;
  limits.seconds = limit_s;
  const machine::Tree tree(root, limits);
  const auto part = [&](void (*read)(const machine::Tree&, Facts&), const std::string& next) {
    Facts found;
    read(tree, found);
    progress.add(found, next);
  };
  part(gather_system, "the files of PCI devices");
  part(gather_pci, "the files of InfiniBand and network devices");
  part(gather_ports, "the files of NVIDIA's driver");
  part(gather_driver, "the linker's folders");
  part(gather_libraries, "the kernel's log");
  part(gather_kernel_log, "NVML");
  if (ask_gpus) {
    Facts found;
    gather_gpus(ask_gpus(), found);
    progress.add(found, "");
  }
}

void add_limit(Facts& facts, const std::string& name, int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return;
  facts.set(name, limit.rlim_cur == RLIM_INFINITY ? "unlimited" : fmt::format("{}", limit.rlim_cur));
}

// Which of the GPUs that the driver lists this process may use. Where a scheduler keeps the others from it
// (ConstrainDevices of Slurm's cgroup.conf), /sys and /proc show them all the same.
void add_own_gpus(const machine::Tree& tree, Facts& facts) {
  for (const std::string& gpu : tree.names("proc/driver/nvidia/gpus").names) {
    const machine::Reading information = tree.bytes(fmt::format("proc/driver/nvidia/gpus/{}/information", gpu));
    const std::string minor = machine::value_of(information.text, "Device Minor");
    if (minor.empty() || !device_in(tree, "dev/nvidia" + minor).ok()) continue;
    facts.set("gpu/" + lower(gpu), tree.may_use("dev/nvidia" + minor) ? "yes" : "no");
  }
}

}  // namespace

Facts gather_node(const std::string& root, const AskGpus& ask_gpus, double limit_s) {
  const auto progress = std::make_shared<Progress>();
  std::thread([=] {
    gather(root, ask_gpus, limit_s, *progress);
    const std::lock_guard lock(progress->mutex);
    progress->done = true;
    progress->changed.notify_one();
  }).detach();
  std::unique_lock lock(progress->mutex);
  progress->changed.wait_for(lock, std::chrono::duration<double>(limit_s), [&] { return progress->done; });
  Facts facts = progress->facts;
  if (!progress->done) facts.set("unfinished", progress->stage);
  return facts;
}

Facts gather_rank(const std::string& root) {
  Facts facts;
  const machine::Tree tree(root);
  if (tree.is_own_machine()) {
    add_limit(facts, "limit/memlock", RLIMIT_MEMLOCK);
    add_limit(facts, "limit/nofile", RLIMIT_NOFILE);
    facts.set("bound/allowed", machine::list_of(machine::allowed_cpus()));
    machine::MemoryPolicy policy;
    const std::string refused = machine::get_memory_policy(policy);
    facts.set("bound/memory_policy", refused.empty() ? machine::Reading{machine::Access::read, describe(policy), {}}
                                                     : machine::Reading{machine::Access::unreadable, {}, refused});
    struct statvfs shm {};
    if (::statvfs("/dev/shm", &shm) == 0) {
      facts.set("shm/bytes",
                fmt::format("{:.0f}", static_cast<double>(shm.f_frsize) * static_cast<double>(shm.f_blocks)));
    }
  }
  const machine::Reading status = tree.bytes("proc/self/status");
  if (status.ok()) {
    for (const auto& [name, key] : {std::pair{"bound/cpus", "Cpus_allowed_list"}, {"bound/capabilities", "CapEff"}}) {
      if (std::string value = machine::value_of(status.text, key); !value.empty()) facts.set(name, std::move(value));
    }
  } else {
    facts.set("bound/cpus", status);
  }
  add_own_gpus(tree, facts);
  for (const auto& [name, value] : job::recorded_environment(job::own_environment())) {
    facts.set("env/" + name, value);
    if (std::ranges::find(variables_with_files, name) != variables_with_files.end()) add_named_file(tree, facts, value);
  }
  return facts;
}

machine::Reading device_in(const machine::Tree& tree, const std::string& path) {
  if (!tree.exists("dev")) return {machine::Access::unreadable, {}, "there is no /dev"};
  return {machine::Access::read, tree.exists(path) ? "yes" : "no", {}};
}

void add_named_file(const machine::Tree& tree, Facts& facts, const std::string& path) {
  if (path.starts_with('/')) facts.set("exists/" + path, tree.exists(path.substr(1)) ? "yes" : "no");
}

std::string host_below(const std::string& root) {
  const machine::Tree tree(root);
  if (tree.is_own_machine()) return machine::host_name();
  const machine::Reading name = tree.line("proc/sys/kernel/hostname");
  return name.ok() && !name.text.empty() ? name.text : root;
}

}  // namespace harness::doctor
