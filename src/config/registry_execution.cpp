#include <array>

#include "base/error.h"
#include "base/units.h"
#include "config/choice.h"
#include "config/fields.h"
#include "config/registry_rows.h"

namespace harness::config {
namespace {

constexpr std::array<Choice<AllReduceAlgorithm>, 2> allreduce_choices{
    {{"ring", AllReduceAlgorithm::ring}, {"halving_doubling", AllReduceAlgorithm::halving_doubling}}};
constexpr std::array<Choice<AttentionKind>, 2> attention_choices{
    {{"fused", AttentionKind::fused}, {"unfused", AttentionKind::unfused}}};
constexpr std::array<Choice<HostBinding>, 4> binding_choices{{{"auto", HostBinding::automatic},
                                                              {"none", HostBinding::none},
                                                              {"numa", HostBinding::numa},
                                                              {"core", HostBinding::core}}};
constexpr int max_threads = 4096;
constexpr int max_engine = 255;

// "auto" is -1; engines are numbered from 0.
int parse_engine(std::string_view text) {
  if (text == "auto") return -1;
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) {
    fail("found {}; allowed: auto, 0 to {}", quote(text), max_engine);
  }
  return static_cast<int>(parse_within(text, 0, max_engine));
}

}  // namespace

std::vector<Variable> execution_variables() {
  std::vector<Variable> rows;
  rows.push_back(one_of(&Settings::allreduce_algorithm, allreduce_choices,
                        {.name = "allreduce_algorithm",
                         .help = "Gloo's algorithm for all-reduces above 4 KiB (NCCL's is nccl_algo)",
                         .backends = only_cpu,
                         .acts_on = {Part::tensor, Part::data, Part::embedding},
                         .without_effect = without_communication,
                         .workloads = communicating}));
  rows.push_back(whole_or("auto", &Settings::threads, 1, max_threads,
                          {.name = "threads",
                           .unit = "threads",
                           .help = "compute threads per rank; auto is cores / ranks on the node",
                           .backends = only_cpu,
                           .acts_on = {Part::matrix_products, Part::attention, Part::other_compute},
                           .moves_peak = true}));
  rows.push_back(one_of(
      &Settings::host_binding, binding_choices,
      {.name = "host_binding",
       .help =
           "CPUs and memory of a worker: numa those of its GPU's NUMA node, core its own cores of them, none all of "
           "the node; auto near its GPU, or its share of cores",
       .backends = everywhere,
       // The host's work for a GPU. A CPU that computes feels it everywhere, but advice on that is not the point.
       .acts_on = {Part::loading, Part::idle}}));
  rows.push_back(
      one_of(&Settings::attention, attention_choices,
             {.name = "attention",
              .help = "fused keeps the scores inside one kernel; unfused is two batched products and a softmax, "
                      "with the probabilities kept in memory for the backward pass",
              .backends = everywhere,
              .acts_on = {Part::attention},
              .fastest = "fused",
              .workloads = {"gpt", "attention"}}));
  rows.push_back(
      {.name = "attention_engine",
       .allowed = "auto, or a number from 0",
       .choices = {{"auto"}},
       .examples = {"0", "1"},
       .help =
           "which of the fused attention kernels that cuDNN offers, in its order; auto is the first that it can build",
       .backends = only_cuda,
       .parse = [](Settings& s, auto text) { s.attention_engine = parse_engine(text); },
       .print =
           [](const Settings& s) { return s.attention_engine < 0 ? "auto" : fmt::format("{}", s.attention_engine); },
       .acts_on = {Part::attention},
       .without_effect =
           [](const Settings& s) {
             return s.attention == AttentionKind::unfused ? "attention is unfused, which has no engine" : "";
           },
       .workloads = {"gpt", "attention"}});
  rows.push_back(true_or_false(
      &Settings::cuda_graph,
      {.name = "cuda_graph",
       .help = "capture a step once and launch it as one CUDA graph, or launch every kernel from the host",
       .backends = only_cuda,
       .acts_on = {Part::idle},
       .fastest = "true"}));
  return rows;
}

}  // namespace harness::config
