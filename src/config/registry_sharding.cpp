#include <array>
#include <string>

#include "base/error.h"
#include "config/choice.h"
#include "config/registry_rows.h"

namespace harness::config {
namespace {

constexpr std::array<Choice<Sharding>, 2> sharding_choices{
    {{"none", Sharding::none}, {"optimizer", Sharding::optimizer}}};

std::string without_replicas(const Settings& s) {
  return has_one_replica(s) ? "data_parallel is 1, so there is no replica to divide anything with" : "";
}

// ---- Words of other frameworks (framework_words.h says where they are from).

FrameworkWords sharding_for_megatron(const Settings& s) {
  if (s.sharding == Sharding::none) return no_word("omit --use-distributed-optimizer");
  return {{{"--use-distributed-optimizer", ""}}};
}
FrameworkWords sharding_for_deepspeed(const Settings& s) {
  return {{{"zero_optimization.stage", std::to_string(static_cast<int>(s.sharding))}}};
}
FrameworkWords sharding_for_pytorch(const Settings& s) {
  if (s.sharding == Sharding::none) return no_word("DistributedDataParallel divides nothing");
  return no_word(
      "no argument: torch.distributed.optim.ZeroRedundancyOptimizer around AdamW, which all-reduces gradients where "
      "this was measured with a reduce-scatter");
}

}  // namespace

std::vector<Variable> sharding_variables() {
  std::vector<Variable> rows;
  rows.push_back({.name = "sharding",
                  .allowed = "none, optimizer",
                  .help =
                      "what the data-parallel replicas divide among them instead of each holding it whole: nothing; "
                      "the optimizer's state, with a reduce-scatter of the gradients and an all-gather of the weights",
                  .backends = everywhere,
                  .parse = [](Settings& s, auto text) { s.sharding = parse_choice(text, sharding_choices); },
                  .print = [](const Settings& s) { return print_choice(s.sharding, sharding_choices); },
                  .acts_on = {Part::other_compute, Part::data},
                  .without_effect = without_replicas,
                  .workloads = only_gpt,
                  .words = {.megatron = sharding_for_megatron,
                            .deepspeed = sharding_for_deepspeed,
                            .pytorch = sharding_for_pytorch},
                  .synonyms = {{"zero_stage"},
                               {"zero_optimization"},
                               {"data_parallel_sharding_strategy"},
                               {"zero1", "sharding: optimizer"},
                               {"distributed_optimizer", "sharding: optimizer"},
                               {"use_distributed_optimizer", "sharding: optimizer"}}});
  return rows;
}

}  // namespace harness::config
