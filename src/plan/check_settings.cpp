#include "plan/check_settings.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"

namespace harness {
namespace {

std::string value_of(const Settings& s, const std::string& variable) {
  const auto it = s.nccl.find(variable);
  return it == s.nccl.end() ? "" : it->second;
}

constexpr int hopper = 90, ampere = 80;

// The algorithms that a canonical nccl_algo asks for, entry by entry; those behind '^' are asked not to be.
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
std::string wanted_nvls(const Settings& s) {
  std::string wanted;
  each_wanted_list(value_of(s, "nccl_algo"), [&](const std::string& list) {
    for (const char* name : {"NVLS", "NVLSTree"}) {
      if (list.find(fmt::format(",{},", name)) != std::string::npos) wanted = name;
    }
  });
  return wanted;
}

// An entry that leaves NCCL nothing but NVLS.
bool only_nvls(const Settings& s) {
  bool only = false;
  each_wanted_list(value_of(s, "nccl_algo"), [&](const std::string& list) {
    only = only || list == ",NVLS," || list == ",NVLSTree," || list == ",NVLS,NVLSTree,";
  });
  return only;
}

std::string capability(const Hardware& h) {
  return fmt::format("{} (compute capability {}.{})", h.name, h.compute_capability / 10, h.compute_capability % 10);
}

std::string check_hardware(const Settings& s, const Hardware& h) {
  if (h.compute_capability == 0) return "";
  if (h.compute_capability < hopper) {
    const std::string algorithm = wanted_nvls(s);
    const bool forced = value_of(s, "nccl_nvls") == "1";
    if (!algorithm.empty() || forced) {
      return fmt::format("{} needs NVLink switches that reduce, which GPUs have used since Hopper (9.0), not {}",
                         forced ? "nccl_nvls 1" : "nccl_algo " + algorithm, capability(h));
    }
  }
  if (h.compute_capability < ampere && s.precision != Precision::fp32) {
    return fmt::format("precision {} needs tensor cores that know it, from Ampere (8.0) on, not {}",
                       s.precision == Precision::bf16 ? "bf16" : "tf32", capability(h));
  }
  return "";
}

std::string check_pairs(const Settings& s) {
  const std::string low = value_of(s, "nccl_min_ctas"), high = value_of(s, "nccl_max_ctas");
  if (!low.empty() && !high.empty() && parse_integer(low) > parse_integer(high)) {
    return fmt::format("nccl_min_ctas {} is above nccl_max_ctas {}; NCCL would take {} for both", low, high, high);
  }
  const std::string threads = value_of(s, "nccl_socket_nthreads"), sockets = value_of(s, "nccl_nsocks_perthread");
  constexpr std::int64_t most_sockets = 64;
  if (!threads.empty() && !sockets.empty() && parse_integer(threads) * parse_integer(sockets) > most_sockets) {
    return fmt::format(
        "nccl_socket_nthreads {} * nccl_nsocks_perthread {} = {} sockets; NCCL has {} at most and would lower the "
        "second to {}",
        threads, sockets, parse_integer(threads) * parse_integer(sockets), most_sockets,
        most_sockets / parse_integer(threads));
  }
  if (value_of(s, "nccl_nvls") == "0" && only_nvls(s)) {
    return fmt::format("nccl_algo {} leaves NCCL nothing but NVLS, which nccl_nvls 0 turns off",
                       value_of(s, "nccl_algo"));
  }
  return "";
}

}  // namespace

std::string check_settings(const Settings& settings, const std::optional<Hardware>& hardware) {
  const std::string why = check_pairs(settings);
  return why.empty() && hardware ? check_hardware(settings, *hardware) : why;
}

}  // namespace harness
