#include "sim/known.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "config/registry.h"

namespace harness::sim {
namespace {

using config::Variable;

// Variables whose values the Program does not show and that no law of costs has.
constexpr std::array<std::string_view, 6> unknown{"attention_engine",    "cuda_graph", "threads",
                                                  "allreduce_algorithm", "env",        "host_binding"};
// NCCL's variables that nccl_time.h has.
constexpr std::array<std::string_view, 6> known_of_nccl{"nccl_algo",     "nccl_proto", "nccl_min_ctas",
                                                        "nccl_max_ctas", "nccl_nvls",  "nccl_collnet"};

bool knows(std::string_view name) {
  if (name.starts_with("nccl_")) return std::ranges::find(known_of_nccl, name) != known_of_nccl.end();
  return std::ranges::find(unknown, name) == unknown.end();
}

std::vector<std::string> unknown_between(const config::Settings& a, const config::Settings& b) {
  std::vector<std::string> names;
  for (const Variable& v : config::registry()) {
    if (!knows(v.name) && v.print(a) != v.print(b)) names.push_back(v.name);
  }
  return names;
}

}  // namespace

std::string unknown_change(const config::Settings& baseline, const config::Settings& changed) {
  const std::vector<std::string> names = unknown_between(baseline, changed);
  return names.empty() ? "" : names.front();
}

std::vector<std::string> disregarded(const config::Settings& settings) {
  return unknown_between({}, settings);
}

}  // namespace harness::sim
