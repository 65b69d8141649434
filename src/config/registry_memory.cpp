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
              .workloads = only_gpt}));
  rows.push_back(
      whole_or("all", &Settings::recompute_layers, 1, max_layers,
               {.name = "recompute_layers",
                .unit = "layers",
                .help = "with recompute: full, the first so many layers of each pipeline stage, or all of them",
                .backends = everywhere,
                .acts_on = {Part::recomputation, Part::tensor},
                .without_effect = without_chosen_layers,
                .workloads = only_gpt}));
  rows.push_back(true_or_false(
      &Settings::sequence_parallel,
      {.name = "sequence_parallel",
       .help = "divide norms, residual stream and what the stages exchange among tensor-parallel ranks by "
               "rows: a reduce-scatter and an all-gather instead of an all-reduce",
       .backends = everywhere,
       .acts_on = {Part::other_compute, Part::tensor, Part::pipeline},
       .without_effect = without_tensor_parallel,
       .workloads = only_gpt}));
  return rows;
}

}  // namespace harness::config
