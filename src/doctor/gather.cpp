#include "doctor/facts.h"

#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/text.h"
#include "job/job.h"
#include "job/messages.h"
#include "machine/cpus.h"
#include "machine/gpus.h"
#include "machine/tree.h"

namespace harness::doctor {
namespace {

// The facts that a gathering thread has found so far. The thread may outlive its caller, so it owns everything it uses.
struct Progress {
  std::mutex mutex;
  std::condition_variable changed;
  Facts facts;
  std::string stage = "the kernel's files";  // "": all is done

  void set(const Facts& found, const std::string& next) {
    const std::lock_guard lock(mutex);
    facts = found;
    stage = next;
    changed.notify_one();
  }
};

void gather(const std::string& root, const AskGpus& ask_gpus, double limit_s, Progress& progress) {
  machine::Tree::Limits limits;
  limits.seconds = limit_s;
  limits.file_bytes = 1 << 20;  // a copy of the kernel's log is the longest file
  const machine::Tree tree(root, limits);
  Facts facts;
  const auto part = [&](void (*read)(const machine::Tree&, Facts&), const std::string& next) {
    read(tree, facts);
    progress.set(facts, next);
  };
  part(gather_system, "the files of PCI devices");
  part(gather_pci, "the files of InfiniBand and network devices");
  part(gather_ports, "the files of NVIDIA's driver");
  part(gather_driver, "the linker's folders");
  part(gather_libraries, "the kernel's log");
  part(gather_kernel_log, "NVML");
  if (ask_gpus) gather_gpus(ask_gpus(), facts);
  progress.set(facts, "");
}

void add_limit(Facts& facts, const std::string& name, int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return;
  facts.set(name, limit.rlim_cur == RLIM_INFINITY ? "unlimited" : fmt::format("{}", limit.rlim_cur));
}

// Records which of the driver's GPUs this process may use. If a scheduler blocks the others (ConstrainDevices in
// Slurm's cgroup.conf), /sys and /proc still list all of them.
void add_own_gpus(const machine::Tree& tree, Facts& facts) {
  for (const std::string& gpu : tree.names("proc/driver/nvidia/gpus").names) {
    const machine::Reading information = tree.bytes(fmt::format("proc/driver/nvidia/gpus/{}/information", gpu));
    const std::string minor = machine::value_of(information.text, "Device Minor");
    if (minor.empty() || !device_in(tree, "dev/nvidia" + minor).ok()) continue;
    facts.set("gpu/" + lower(gpu), tree.may_use("dev/nvidia" + minor) ? "yes" : "no");
  }
}

constexpr std::string_view rank_placeholder = "{rank}";

struct Question {
  HowToExamine how;
  std::vector<std::int32_t> of_nodes;  // ranks that also gather their node's facts, ascending
};

struct Told {
  std::string host;
  std::vector<std::pair<std::string, machine::Reading>> rank, node;
};

template <job::MessageOf<Question> M, class Each>
void each_field(M& m, Each& each) {
  each(m.how.sysroot, m.how.limit_s, m.how.asks_nvml, m.of_nodes);
}

template <job::MessageOf<Told> M, class Each>
void each_field(M& m, Each& each) {
  each(m.host, m.rank, m.node);
}

decltype(Told::node) packed(const Facts& facts) {
  return {facts.begin(), facts.end()};
}

Facts unpacked(const decltype(Told::node)& entries) {
  Facts facts;
  for (const auto& [name, reading] : entries) facts.set(name, reading);
  return facts;
}

// Unreadable nodes must not pass for healthy: a misspelt or empty folder, or a container without /proc.
void refuse_if_all_are_dark(const std::vector<Node>& nodes, const std::string& sysroot) {
  constexpr int could_not_run = 3;
  if (!std::ranges::all_of(nodes, [](const Node& node) { return told_nothing(node.facts); })) return;
  throw Error(
      fmt::format("nothing could be checked: below {} no file of a node can be read ({}); expected a folder with "
                  "a node's /proc and /sys",
                  quote(sysroot), nodes.empty() ? "no rank answered" : why_nothing(nodes.front().facts)),
      could_not_run);
}

// The name of the machine whose files are below the root.
std::string host_below(const std::string& root) {
  const machine::Tree tree(root);
  if (tree.is_own_machine()) return machine::host_name();
  const machine::Reading name = tree.line("proc/sys/kernel/hostname");
  return name.ok() && !name.text.empty() ? name.text : root;
}

}  // namespace

Facts gather_node(const std::string& root, const AskGpus& ask_gpus, double limit_s) {
  const auto progress = std::make_shared<Progress>();
  std::thread([=] { gather(root, ask_gpus, limit_s, *progress); }).detach();
  std::unique_lock lock(progress->mutex);
  progress->changed.wait_for(lock, std::chrono::duration<double>(limit_s), [&] { return progress->stage.empty(); });
  Facts facts = progress->facts;
  if (!progress->stage.empty()) facts.set("unfinished", progress->stage);
  return facts;
}

bool locks_beyond_limit(const std::string& status, const std::string& users) {
  constexpr std::uint64_t ipc_lock = 1u << 14;  // CAP_IPC_LOCK
  const auto capabilities = number_in<std::uint64_t>(machine::value_of(status, "CapEff"), 16);
  const bool is_initial = users.empty() || users.ends_with(" 4294967295");
  return is_initial && (capabilities.value_or(0) & ipc_lock) != 0;
}

Facts gather_rank(const std::string& root) {
  Facts facts;
  const machine::Tree tree(root);
  if (tree.is_own_machine()) {
    add_limit(facts, "limit/memlock", RLIMIT_MEMLOCK);
    add_limit(facts, "limit/nofile", RLIMIT_NOFILE);
    facts.set("bound/allowed", machine::list_of(machine::allowed_cpus()));
    struct statvfs shm {};
    if (::statvfs("/dev/shm", &shm) == 0) {
      facts.set("shm/bytes",
                fmt::format("{:.0f}", static_cast<double>(shm.f_frsize) * static_cast<double>(shm.f_blocks)));
    }
  }
  machine::Reading status = tree.bytes("proc/self/status");
  if (facts.has("limit/memlock") && locks_beyond_limit(status.text, tree.line("proc/self/uid_map").text))
    facts.set("limit/memlock", "unlimited");
  status.text = machine::value_of(status.text, "Cpus_allowed_list");
  facts.set("bound/cpus", status);
  add_own_gpus(tree, facts);
  for (const auto& [name, value] : job::recorded_environment(job::own_environment())) facts.set("env/" + name, value);
  Facts file;
  gather_nccl_file(tree, file);
  std::vector<std::string> missing;
  for (const std::string name :
       {"NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "NCCL_CONF_FILE", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN"}) {
    const std::string own = "env/" + name, value = facts.has(own) ? facts.text(own) : file.text("nccl_conf/" + name);
    for (const std::string& one : split_text(value, ","))  // since 2.27 some are lists
      if (one.starts_with('/') && !tree.exists(one.substr(1))) missing.push_back(fmt::format("{}={}", name, one));
  }
  facts.set("missing_files", missing.empty() ? "none" : join(missing, ", "));
  return facts;
}

machine::Reading device_in(const machine::Tree& tree, const std::string& path) {
  if (!tree.exists("dev")) return {machine::Access::unreadable, {}, "there is no /dev"};
  return {machine::Access::read, tree.exists(path) ? "yes" : "no", {}};
}

std::string answer(int rank, const std::string& bytes) try {
  const auto question = job::decode<Question>(bytes);
  const std::string root = replaced_all(question.how.sysroot, rank_placeholder, std::to_string(rank));
  Told told{host_below(root), packed(gather_rank(root)), {}};
  if (std::ranges::binary_search(question.of_nodes, rank)) {
    const bool asks = question.how.asks_nvml && root == "/";
    told.node = packed(gather_node(root, asks ? AskGpus(machine::gpu_report) : AskGpus(), question.how.limit_s));
  }
  return job::encode(told);
} catch (const std::exception&) {
  return "";  // rank 0 reports that there was no answer
}

std::vector<Node> examine(job::Job& job, const HowToExamine& how) {
  const std::vector<job::RankPlace>& places = job.places();
  Question question{how, {}};
  // With one folder per rank, the ranks of a node are known only after they have reported their host names.
  const bool by_rank = how.sysroot.find(rank_placeholder) != std::string::npos;
  for (const job::RankPlace& place : places) {
    if (place.local_rank == 0 || by_rank) question.of_nodes.push_back(place.rank);
  }
  const std::vector<std::string> answers = job.ask(job::encode(question));
  std::vector<Node> nodes;
  std::vector<int> numbers;  // of the nodes, as MPI has them
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    const bool silent = answers[rank].empty();
    Told told{places[rank].host, {}, {}};
    if (!silent) told = job::decode<Told>(answers[rank]);
    std::size_t at = 0;
    while (at < nodes.size() && (numbers[at] != places[rank].node || (!silent && nodes[at].host != told.host))) ++at;
    if (at == nodes.size()) {
      numbers.push_back(places[rank].node);
      nodes.push_back({told.host, {}, unpacked(told.node)});
    }
    Node& node = nodes[at];
    node.ranks.push_back({static_cast<int>(rank), unpacked(told.rank)});
    if (silent) node.facts.set("silent", fmt::format("rank {}", rank));
  }
  refuse_if_all_are_dark(nodes, how.sysroot);
  return nodes;
}

}  // namespace harness::doctor
