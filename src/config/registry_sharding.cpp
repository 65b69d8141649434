#include <array>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "config/choice.h"
#include "config/fields.h"
#include "config/registry_rows.h"

namespace harness::config {
namespace {

constexpr std::array<Choice<Sharding>, 4> sharding_choices{{{"none", Sharding::none},
                                                            {"optimizer", Sharding::optimizer},
                                                            {"gradients", Sharding::gradients},
                                                            {"parameters", Sharding::parameters}}};
constexpr std::array<Choice<ShardingGroup>, 2> group_choices{
    {{"data", ShardingGroup::data}, {"node", ShardingGroup::node}}};
constexpr int max_prefetch = 1 << 16;

std::string without_replicas(const Settings& s) {
  return has_one_replica(s) ? "data_parallel is 1, so there is no replica to divide anything with" : "";
}

std::string without_group(const Settings& s) {
  if (s.sharding == Sharding::none) return "sharding is none, so nothing is divided";
  const bool on_one_node = s.ranks != 0 && s.layout.replicas_of_node * s.replica_ranks() == s.ranks;
  return on_one_node && !has_one_replica(s) ? "all replicas share a node" : without_replicas(s);
}

constexpr std::array<Choice<program::DType>, 2> type_choices{
    {{"fp32", program::DType::f32}, {"bf16", program::DType::bf16}}};

std::string without_gathered_buckets(const Settings& s) {
  if (s.sharding == Sharding::none) return "sharding is none, so each replica has updated all weights itself";
  if (s.sharding == Sharding::parameters)
    return "sharding parameters gathers by layers: prefetch_layers says how far ahead";
  return without_replicas(s);
}

std::string without_gathered_layers(const Settings& s) {
  if (s.sharding != Sharding::parameters) return "sharding is not parameters, with which alone layers are gathered";
  return without_replicas(s);
}

std::string gather_conflict(const Settings& s) {
  if (!s.overlap_param_gather || s.sharding != Sharding::none) return "";
  return "overlap_param_gather needs weights that replicas gather; with sharding none each has updated its own";
}

}  // namespace

std::vector<Variable> sharding_variables() {
  std::vector<Variable> rows;
  rows.push_back(
      one_of(&Settings::sharding, sharding_choices,
             {.name = "sharding",
              .help = "what the data-parallel replicas divide among them instead of each holding it whole: nothing; "
                      "the optimizer's state; also the gradients, reduced after each micro-batch; also the weights, "
                      "gathered layer by layer for each pass",
              .backends = everywhere,
              .acts_on = {Part::other_compute, Part::data},
              .without_effect = without_replicas,
              .workloads = only_gpt}));
  rows.push_back(one_of(
      &Settings::sharding_group, group_choices,
      {.name = "sharding_group",
       .help = "the replicas that divide what sharding names: all of them, or those that share a node, so that "
               "each node has all of it and nodes exchange no more than the sums of their parts of the gradients",
       .backends = everywhere,
       .acts_on = {Part::other_compute, Part::data},
       .without_effect = without_group,
       .workloads = only_gpt}));
  rows.push_back(true_or_false(
      &Settings::overlap_param_gather,
      {.name = "overlap_param_gather",
       .help =
           "with sharding: optimizer or gradients, gather the weights of a bucket behind the layers that come before "
           "its first use, or all of them before the first layer",
       .backends = everywhere,
       .acts_on = {Part::data},
       .fastest = "true",
       .without_effect = without_gathered_buckets,
       .conflict = gather_conflict,
       .workloads = only_gpt}));
  rows.push_back({.name = "prefetch_layers",
                  .unit = "layers",
                  .allowed = "a number from 0",
                  .examples = {"2", "4"},
                  .help =
                      "with sharding: parameters, how many layers ahead of their use weights are gathered; each takes "
                      "the memory of a layer's weights",
                  .backends = everywhere,
                  .parse = [](Settings& s,
                              auto text) { s.prefetch_layers = static_cast<int>(parse_within(text, 0, max_prefetch)); },
                  .print = [](const Settings& s) { return fmt::format("{}", s.prefetch_layers); },
                  .acts_on = {Part::data},
                  .without_effect = without_gathered_layers,
                  .workloads = only_gpt});
  rows.push_back(
      one_of(&Settings::grad_reduce_type, type_choices,
             {.name = "grad_reduce_precision",
              .help = "number format in which replicas exchange and sum up gradients; each adds its micro-batches up "
                      "and updates weights in fp32",
              .backends = everywhere,
              .acts_on = {Part::data},
              .fastest = "bf16",
              .mathematics = Mathematics::rounded,
              .without_effect = without_data_parallel,
              .workloads = only_gpt}));
  return rows;
}

}  // namespace harness::config
