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

// ---- Words of other frameworks (framework_words.h says where they are from).

FrameworkWords sharding_for_megatron(const Settings& s) {
  if (s.sharding == Sharding::none) return no_word("omit --use-distributed-optimizer");
  FrameworkWords words{{{"--use-distributed-optimizer", ""}}};
  if (s.sharding == Sharding::optimizer) return words;
  words.flags.emplace_back("--use-megatron-fsdp", "");
  words.flags.emplace_back("--data-parallel-sharding-strategy",
                           s.sharding == Sharding::gradients ? "optim_grads" : "optim_grads_params");
  return words;
}
FrameworkWords sharding_for_deepspeed(const Settings& s) {
  return {{{"zero_optimization.stage", std::to_string(static_cast<int>(s.sharding))}}};
}
FrameworkWords sharding_for_pytorch(const Settings& s) {
  if (s.sharding == Sharding::none) return no_word("DistributedDataParallel divides nothing");
  if (s.sharding > Sharding::optimizer) {
    return no_word(fmt::format(
        "no argument: torch.distributed.fsdp.fully_shard on each layer and on the model, reshard_after_forward={}",
        s.sharding == Sharding::parameters ? "True" : "False"));
  }
  return no_word(
      "no argument: torch.distributed.optim.ZeroRedundancyOptimizer around AdamW, which all-reduces gradients where "
      "this was measured with a reduce-scatter");
}

FrameworkWords group_for_megatron(const Settings& s) {
  if (s.sharding == Sharding::none || s.sharding_group == ShardingGroup::data)
    return no_word("one instance is the default");
  return no_word(
      "--num-distributed-optimizer-instances with the number of nodes that a data-parallel group spans: each instance "
      "then shares a node");
}
FrameworkWords group_for_deepspeed(const Settings& s) {
  if (s.sharding == Sharding::none || s.sharding_group == ShardingGroup::data)
    return no_word("all ranks are the default");
  if (s.sharding < Sharding::parameters) return no_word("no key: only stage 3 divides among fewer than all ranks");
  return no_word(
      "zero_optimization.mics_shard_size with the data-parallel ranks of a node (MiCS); zero_hpz_partition_size (hpZ) "
      "keeps parts of a node for the backward pass alone, beside those that all ranks divide");
}
FrameworkWords group_for_pytorch(const Settings& s) {
  if (s.sharding == Sharding::none || s.sharding_group == ShardingGroup::data) {
    return no_word("a mesh of one dimension is the default of fully_shard");
  }
  return no_word(
      "no argument: fully_shard with a mesh of two dimensions, the nodes and the data-parallel ranks of a node "
      "(FullyShardedDataParallel: ShardingStrategy.HYBRID_SHARD)");
}

FrameworkWords prefetch_for_deepspeed(const Settings& s) {
  if (s.sharding != Sharding::parameters) return no_word("only with zero_optimization.stage 3");
  return no_word(
      fmt::format("zero_optimization.stage3_prefetch_bucket_size: the elements of {} layers", s.prefetch_layers));
}
FrameworkWords prefetch_for_pytorch(const Settings& s) {
  if (s.sharding != Sharding::parameters) return no_word("only where fully_shard frees weights after the forward pass");
  return no_word(fmt::format(
      "no argument: set_modules_to_forward_prefetch and set_modules_to_backward_prefetch with the next {} layers",
      s.prefetch_layers));
}

FrameworkWords gather_for_megatron(const Settings& s) {
  if (s.overlap_param_gather) {
    return {{{"--overlap-param-gather", ""}}, "Megatron-LM wants --overlap-grad-reduce with it"};
  }
  return no_word("omit --overlap-param-gather: weights are then gathered before the first layer");
}

FrameworkWords reduce_type_for_megatron(const Settings& s) {
  if (s.grad_reduce_type == program::DType::f32) return no_word("omit --grad-reduce-in-bf16");
  return {{{"--grad-reduce-in-bf16", ""}},
          "Megatron-LM then also adds micro-batches up in bf16; measured with fp32 sums, in bf16 on the wire only"};
}
FrameworkWords reduce_type_for_deepspeed(const Settings& s) {
  return {{{"communication_data_type", print_choice(s.grad_reduce_type, type_choices)}}};
}
FrameworkWords reduce_type_for_pytorch(const Settings& s) {
  if (s.grad_reduce_type == program::DType::f32) return no_word("register no communication hook");
  return no_word(
      "no argument: DistributedDataParallel.register_comm_hook with "
      "torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook");
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
              .workloads = only_gpt,
              .words = {.megatron = sharding_for_megatron,
                        .deepspeed = sharding_for_deepspeed,
                        .pytorch = sharding_for_pytorch},
              .synonyms = {{"zero_stage"},
                           {"zero_optimization"},
                           {"data_parallel_sharding_strategy"},
                           {"fsdp", "sharding: parameters"},
                           {"fully_shard", "sharding: parameters"},
                           {"zero3", "sharding: parameters"},
                           {"zero2", "sharding: gradients"},
                           {"zero1", "sharding: optimizer"},
                           {"distributed_optimizer", "sharding: optimizer"},
                           {"use_distributed_optimizer", "sharding: optimizer"}}}));
  rows.push_back(one_of(
      &Settings::sharding_group, group_choices,
      {.name = "sharding_group",
       .help = "the replicas that divide what sharding names: all of them, or those that share a node, so that "
               "each node has all of it and nodes exchange no more than the sums of their parts of the gradients",
       .backends = everywhere,
       .acts_on = {Part::other_compute, Part::data},
       .without_effect = without_group,
       .workloads = only_gpt,
       .words = {.megatron = group_for_megatron, .deepspeed = group_for_deepspeed, .pytorch = group_for_pytorch},
       .synonyms = {{"num_distributed_optimizer_instances"},
                    {"hybrid_shard", "sharding_group: node"},
                    {"hsdp", "sharding_group: node"},
                    {"hpz", "sharding_group: node"},
                    {"zero_hpz_partition_size", "sharding_group: node"},
                    {"mics", "sharding_group: node"},
                    {"mics_shard_size", "sharding_group: node"}}}));
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
       .workloads = only_gpt,
       .words = {.megatron = gather_for_megatron}}));
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
                  .workloads = only_gpt,
                  .words = {.deepspeed = prefetch_for_deepspeed, .pytorch = prefetch_for_pytorch},
                  .synonyms = {{"stage3_prefetch_bucket_size"}, {"forward_prefetch"}, {"backward_prefetch"}}});
  rows.push_back(one_of(
      &Settings::grad_reduce_type, type_choices,
      {.name = "grad_reduce_precision",
       .help = "number format in which replicas exchange and sum up gradients; each adds its micro-batches up "
               "and updates weights in fp32",
       .backends = everywhere,
       .acts_on = {Part::data},
       .fastest = "bf16",
       .mathematics = Mathematics::rounded,
       .without_effect = without_data_parallel,
       .workloads = only_gpt,
       .words = {.megatron = reduce_type_for_megatron,
                 .deepspeed = reduce_type_for_deepspeed,
                 .pytorch = reduce_type_for_pytorch},
       .synonyms = {
           {"grad_reduce_in_bf16", "grad_reduce_precision: bf16"}, {"reduce_dtype"}, {"communication_data_type"}}}));
  return rows;
}

}  // namespace harness::config
