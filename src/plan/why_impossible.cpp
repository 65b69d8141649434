#include "plan/why_impossible.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "workloads/workload.h"

namespace harness::plan {
namespace {

std::string value_of(const config::Settings& s, const std::string& variable) {
  const auto it = s.nccl.find(variable);
  return it == s.nccl.end() ? "" : it->second;
}

constexpr int hopper = 90, ampere = 80;

// The algorithms that a canonical nccl_algo wants, entry by entry, as ",Ring,Tree,"; an entry with '^' wants none.
template <class Each>
void each_wanted_list(const std::string& algorithms, Each&& each) {
  for (std::size_t at = 0; at < algorithms.size();) {
    const std::size_t end = std::min(algorithms.find(';', at), algorithms.size());
    std::string entry = algorithms.substr(at, end - at);
    entry = entry.substr(entry.find(':') + 1);  // npos + 1 is 0
    if (!entry.starts_with('^')) each("," + entry + ",");
    at = end + 1;
  }
}

// Which of the NVLS algorithms is named, "" if none is.
std::string wanted_nvls(const config::Settings& s) {
  std::string wanted;
  each_wanted_list(value_of(s, "nccl_algo"), [&](const std::string& list) {
    for (const char* name : {"NVLS", "NVLSTree"}) {
      if (list.find(fmt::format(",{},", name)) != std::string::npos) wanted = name;
    }
  });
  return wanted;
}

// An entry that leaves NCCL nothing but NVLS.
bool only_nvls(const config::Settings& s) {
  bool only = false;
  each_wanted_list(value_of(s, "nccl_algo"), [&](const std::string& list) {
    only = only || list == ",NVLS," || list == ",NVLSTree," || list == ",NVLS,NVLSTree,";
  });
  return only;
}

std::string capability(const config::Hardware& h) {
  return fmt::format("{} (compute capability {}.{})", h.name, h.compute_capability / 10, h.compute_capability % 10);
}

std::string why_impossible_on(const config::Settings& s, const config::Hardware& h) {
  if (h.compute_capability == 0) return "";
  if (h.compute_capability < hopper) {
    const std::string algorithm = wanted_nvls(s);
    const bool forced = value_of(s, "nccl_nvls") == "1";
    if (!algorithm.empty() || forced) {
      return fmt::format(
          "{} needs reduction in the NVLink switches, which requires compute capability 9.0 (Hopper) or later; the GPU "
          "is {}",
          forced ? "nccl_nvls 1" : "nccl_algo " + algorithm, capability(h));
    }
    if (s.programmatic_launch) {
      return fmt::format("programmatic_launch needs compute capability 9.0 (Hopper) or later; the GPU is {}",
                         capability(h));
    }
  }
  if (h.compute_capability < ampere && s.precision != config::Precision::fp32) {
    return fmt::format("precision {} needs tensor cores of compute capability 8.0 (Ampere) or later; the GPU is {}",
                       config::name_of(s.precision), capability(h));
  }
  return "";
}

std::string why_impossible_together(const config::Settings& s) {
  const std::string low = value_of(s, "nccl_min_ctas"), high = value_of(s, "nccl_max_ctas");
  if (!low.empty() && !high.empty() && parse_integer(low) > parse_integer(high)) {
    return fmt::format("nccl_min_ctas {} is above nccl_max_ctas {}; NCCL would use {} for both", low, high, high);
  }
  const std::string threads = value_of(s, "nccl_socket_nthreads"), sockets = value_of(s, "nccl_nsocks_perthread");
  constexpr std::int64_t max_sockets = 64;
  if (!threads.empty() && !sockets.empty() && parse_integer(threads) * parse_integer(sockets) > max_sockets) {
    return fmt::format(
        "nccl_socket_nthreads {} * nccl_nsocks_perthread {} = {} sockets; NCCL opens at most {} and would lower "
        "nccl_nsocks_perthread to {}",
        threads, sockets, parse_integer(threads) * parse_integer(sockets), max_sockets,
        max_sockets / parse_integer(threads));
  }
  if (value_of(s, "nccl_nvls") == "0" && only_nvls(s)) {
    return fmt::format("nccl_algo {} allows NCCL only NVLS, which nccl_nvls 0 turns off", value_of(s, "nccl_algo"));
  }
  return "";
}

// As set; data parallelism takes the ranks that remain.
Division layout_on(const config::Settings& s, int ranks) {
  const std::int64_t replica = s.replica_ranks();
  if (ranks % replica != 0) {
    std::vector<std::string> sizes;
    for (const program::Axis axis : program::set_axes) {
      sizes.push_back(fmt::format("{} {}", program::row_of(axis).key, s.layout[axis]));
    }
    return {{}, fmt::format("{} = {} does not divide {} ranks", fmt::join(sizes, " * "), replica, ranks)};
  }
  program::Layout layout = s.layout;
  layout[program::Axis::data] = static_cast<int>(ranks / replica);
  return {layout, ""};
}

}  // namespace

std::string why_impossible(const config::Settings& settings, const std::optional<config::Hardware>& hardware) {
  const std::string why = why_impossible_together(settings);
  return why.empty() && hardware ? why_impossible_on(settings, *hardware) : why;
}

Division divide_ranks(const config::Model& model, const config::Settings& settings, int ranks) {
  if (settings.ranks > ranks) return {{}, fmt::format("ranks is {}, but the job has only {}", settings.ranks, ranks)};
  const workloads::Workload& workload = workloads::workload_of(settings);
  if (std::string why = workload.why_impossible(model, settings); !why.empty()) return {{}, std::move(why)};
  Division division = layout_on(settings, settings.ranks == 0 ? ranks : settings.ranks);
  if (!division.why_impossible.empty()) return division;
  division.why_impossible = workload.why_impossible_on(model, settings, division.layout);
  return division;
}

}  // namespace harness::plan
