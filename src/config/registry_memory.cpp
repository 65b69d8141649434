#include <array>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "config/choice.h"
#include "config/fields.h"
#include "config/registry_rows.h"

namespace harness::config {
namespace {

constexpr std::array<Choice<Recompute>, 3> recompute_choices{
    {{"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}}};
constexpr int max_layers = 1 << 16;

std::string without_scores(const Settings& s) {
  const bool nothing = s.recompute == Recompute::selective && s.attention == AttentionKind::fused;
  return nothing ? "selective frees nothing: fused attention stores no scores" : "";
}

std::string without_chosen_layers(const Settings& s) {
  return s.recompute == Recompute::full ? "" : "recompute is not full, which alone goes by layers";
}

std::string without_tensor_parallel(const Settings& s) {
  return s.layout[program::Axis::tensor] == 1 ? "tensor_parallel is 1, so no rank shares its rows with another" : "";
}

// ---- Words of other frameworks (framework_words.h says where they are from).

FrameworkWords recompute_for_megatron(const Settings& s) {
  if (s.recompute == Recompute::none) return no_word("omit --recompute-granularity: nothing is then recomputed");
  FrameworkWords words{{{"--recompute-granularity", print_choice(s.recompute, recompute_choices)}}};
  if (!without_scores(s).empty()) words.note = "Megatron-LM also runs fused attention again, which frees nothing";
  return words;
}
const char* recomputed_module(const Settings& s) {
  return s.recompute == Recompute::full ? "layer" : "layer's attention, from queries, keys and values on,";
}
FrameworkWords recompute_for_deepspeed(const Settings& s) {
  if (s.recompute == Recompute::none) return no_word("no key: do not call deepspeed.checkpointing.checkpoint");
  return no_word(fmt::format("no key: deepspeed.checkpointing.checkpoint around each {} in the training script",
                             recomputed_module(s)));
}
FrameworkWords recompute_for_pytorch(const Settings& s) {
  if (s.recompute == Recompute::none) return no_word("do not call torch.utils.checkpoint.checkpoint");
  return no_word(fmt::format("no argument: torch.utils.checkpoint.checkpoint around each {} in the training script",
                             recomputed_module(s)));
}

FrameworkWords recompute_layers_for_megatron(const Settings& s) {
  if (s.recompute != Recompute::full) return no_word("only with --recompute-granularity full");
  if (s.recompute_layers == 0) return {{{"--recompute-method", "uniform"}, {"--recompute-num-layers", "1"}}};
  return {{{"--recompute-method", "block"}, {"--recompute-num-layers", std::to_string(s.recompute_layers)}}};
}

FrameworkWords sequence_parallel_for_megatron(const Settings& s) {
  if (s.sequence_parallel) return {{{"--sequence-parallel", ""}}};
  return no_word("omit --sequence-parallel");
}
FrameworkWords sequence_parallel_for_pytorch(const Settings& s) {
  return no_word(s.sequence_parallel
                     ? "no argument: torch.distributed.tensor.parallel.SequenceParallel for the norms, in "
                       "the plan that splits the model"
                     : "no SequenceParallel in the plan that splits the model");
}

}  // namespace

std::vector<Variable> memory_variables() {
  std::vector<Variable> rows;
  rows.push_back(
      one_of(&Settings::recompute, recompute_choices,
             {.name = "recompute",
              .help = "activations that are not kept for the backward pass but computed again in it; selective: the "
                      "probabilities of unfused attention; full: of a layer all but its input",
              .backends = everywhere,
              .acts_on = {Part::recomputation, Part::tensor},
              .fastest = "none",
              .without_effect = without_scores,
              .workloads = only_gpt,
              .words = {.megatron = recompute_for_megatron,
                        .deepspeed = recompute_for_deepspeed,
                        .pytorch = recompute_for_pytorch},
              .synonyms = {{"activation_checkpoint"},
                           {"recompute_granularity"},
                           {"recompute_activations", "recompute: selective"},
                           {"activation_checkpointing", "recompute: full"},
                           {"gradient_checkpointing", "recompute: full"}}}));
  rows.push_back(
      whole_or("all", &Settings::recompute_layers, 1, max_layers,
               {.name = "recompute_layers",
                .unit = "layers",
                .help = "with recompute: full, the first so many layers of each pipeline stage, or all of them",
                .backends = everywhere,
                .acts_on = {Part::recomputation, Part::tensor},
                .without_effect = without_chosen_layers,
                .workloads = only_gpt,
                .words = {.megatron = recompute_layers_for_megatron},
                .synonyms = {{"recompute_num_layers"}}}));
  rows.push_back(true_or_false(
      &Settings::sequence_parallel,
      {.name = "sequence_parallel",
       .help = "divide norms, residual stream and what the stages exchange among tensor-parallel ranks by "
               "rows: a reduce-scatter and an all-gather instead of an all-reduce",
       .backends = everywhere,
       .acts_on = {Part::other_compute, Part::tensor, Part::pipeline},
       .without_effect = without_tensor_parallel,
       .workloads = only_gpt,
       .words = {.megatron = sequence_parallel_for_megatron, .pytorch = sequence_parallel_for_pytorch}}));
  return rows;
}

}  // namespace harness::config
