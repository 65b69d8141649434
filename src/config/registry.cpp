#include "config/registry.h"

#include <array>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "config/fields.h"
#include "config/nccl_value.h"

namespace harness {
namespace {

// One element of a choice: the word a person writes and the value it stands for.
template <class T>
using Choice = std::pair<const char*, T>;

constexpr std::array<Choice<BackendKind>, 3> backend_choices{
    {{"cpu", BackendKind::cpu}, {"cuda", BackendKind::cuda}, {"sim", BackendKind::sim}}};
constexpr std::array<Choice<Precision>, 2> precision_choices{{{"fp32", Precision::fp32}, {"bf16", Precision::bf16}}};
constexpr std::array<Choice<AllReduceAlgorithm>, 3> allreduce_choices{
    {{"ring", AllReduceAlgorithm::ring},
     {"halving_doubling", AllReduceAlgorithm::halving_doubling},
     {"bcube", AllReduceAlgorithm::bcube}}};

template <class T, std::size_t n>
std::vector<std::string> words_of(const std::array<Choice<T>, n>& choices) {
  std::vector<std::string> words;
  words.reserve(n);
  for (const auto& choice : choices) words.emplace_back(choice.first);
  return words;
}

template <class T, std::size_t n>
T parse_choice(std::string_view text, const std::array<Choice<T>, n>& choices) {
  for (const auto& choice : choices) {
    if (text == choice.first) return choice.second;
  }
  const auto words = words_of(choices);
  fail("found {}; allowed: {}{}", quote(text), join(words, ", "), did_you_mean(nearest(text, words)));
}

template <class T, std::size_t n>
std::string print_choice(T value, const std::array<Choice<T>, n>& choices) {
  for (const auto& choice : choices) {
    if (value == choice.second) return choice.first;
  }
  fail("a value of {} is not one of {}", static_cast<int>(value), join(words_of(choices), ", "));
}

// A whole number, or a word that stands for 0 ("all", "auto").
int within_or_word(std::string_view text, std::string_view word, int high) {
  if (text == word) return 0;
  const bool number = !text.empty() && text.find_first_not_of("+-0123456789") == std::string_view::npos;
  if (!number) fail("found {}; allowed: {}, 1 to {}", quote(text), word, high);
  return static_cast<int>(parse_within(text, 1, high));
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

const std::vector<std::string> layout_parts{"tensor_parallel", "pipeline_parallel"};
constexpr int max_ranks = 1 << 20;

// "{tensor_parallel: 2, pipeline_parallel: 1}", or any part of it.
void parse_layout(Settings& settings, std::string_view text) {
  const std::string_view whole = trim(text);
  constexpr std::string_view example = "expected a map such as {tensor_parallel: 2, pipeline_parallel: 1}";
  if (whole.size() < 2 || whole.front() != '{' || whole.back() != '}') fail("found {}; {}", quote(whole), example);
  LayoutSetting layout = settings.layout;
  std::string_view rest = trim(whole.substr(1, whole.size() - 2));
  if (rest.empty()) fail("found {}, which names nothing; {}", quote(whole), example);
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest = part.size() < rest.size() ? rest.substr(part.size() + 1) : std::string_view();
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos) fail("found {}; {}", quote(trim(part)), example);
    const std::string_view key = trim(part.substr(0, colon));
    const auto value = trim(part.substr(colon + 1));
    if (key == "tensor_parallel") {
      layout.tensor_parallel = static_cast<int>(parse_within(value, 1, max_ranks));
    } else if (key == "pipeline_parallel") {
      layout.pipeline_parallel = static_cast<int>(parse_within(value, 1, max_ranks));
    } else {
      fail("found {}; allowed: {}{}", quote(key), join(layout_parts, ", "), did_you_mean(nearest(key, layout_parts)));
    }
  }
  settings.layout = layout;
}

std::string print_layout(const Settings& s) {
  return fmt::format("{{tensor_parallel: {}, pipeline_parallel: {}}}", s.layout.tensor_parallel,
                     s.layout.pipeline_parallel);
}

std::string without_data_parallel(const Settings& s) {
  const bool alone = s.ranks != 0 && s.ranks == s.layout.tensor_parallel * s.layout.pipeline_parallel;
  return alone ? "data_parallel is 1, there are no gradients to reduce" : "";
}

std::string without_communication(const Settings& s) {
  return s.ranks == 1 ? "there is one rank, nothing is communicated" : "";
}

constexpr std::int64_t max_batch = std::int64_t{1} << 31;
constexpr std::int64_t min_bucket_bytes = 1024;
constexpr int max_threads = 4096;

const std::vector<BackendKind> everywhere{BackendKind::cpu, BackendKind::cuda, BackendKind::sim};
const std::vector<BackendKind> only_cpu{BackendKind::cpu};
const std::vector<BackendKind> where_nccl{BackendKind::cuda, BackendKind::sim};

// A variable that NCCL reads from its environment. It is kept in canonical form, absent where NCCL is to choose.
Variable nccl_variable(const std::string& name, std::string environment_name, std::string allowed, std::string help,
                       std::string (*canonical)(std::string_view)) {
  Variable v;
  v.name = name;
  v.allowed = std::move(allowed);
  v.help = std::move(help);
  v.backends = where_nccl;
  v.parse = [name, canonical](Settings& s, std::string_view text) {
    const std::string value = canonical(text);
    if (value == "default") {
      s.environment.erase(name);
    } else {
      s.environment[name] = value;
    }
  };
  v.print = [name](const Settings& s) {
    const auto it = s.environment.find(name);
    return it == s.environment.end() ? std::string("default") : it->second;
  };
  v.without_effect = without_communication;
  v.environment_name = std::move(environment_name);
  return v;
}

// The rows, in the order in which tables show them. docs/adding.md walks through one.
std::vector<Variable> make_registry() {
  std::vector<Variable> rows;
  rows.push_back({.name = "precision",
                  .unit = "",
                  .allowed = "fp32, bf16",
                  .help = "number format of weights and activations in matrix products; bf16 keeps fp32 master weights",
                  .backends = everywhere,
                  .parts = {},
                  .parse = [](Settings& s, auto text) { s.precision = parse_choice(text, precision_choices); },
                  .print = [](const Settings& s) { return print_choice(s.precision, precision_choices); },
                  .environment_name = ""});
  rows.push_back({.name = "global_batch_size",
                  .unit = "sequences",
                  .allowed = "a whole number",
                  .help = "sequences per step, over all ranks",
                  .backends = everywhere,
                  .parts = {},
                  .parse = [](Settings& s, auto text) { s.global_batch_size = parse_within(text, 1, max_batch); },
                  .print = [](const Settings& s) { return fmt::format("{}", s.global_batch_size); },
                  .environment_name = ""});
  rows.push_back({.name = "micro_batch_size",
                  .unit = "sequences",
                  .allowed = "a whole number",
                  .help = "sequences per forward pass of one rank; the global batch stays, gradients accumulate",
                  .backends = everywhere,
                  .parts = {},
                  .parse = [](Settings& s, auto text) { s.micro_batch_size = parse_within(text, 1, max_batch); },
                  .print = [](const Settings& s) { return fmt::format("{}", s.micro_batch_size); },
                  .environment_name = ""});
  rows.push_back({.name = "layout",
                  .unit = "",
                  .allowed = "{tensor_parallel: N, pipeline_parallel: N}",
                  .help = "how the model is cut; data_parallel is what remains: ranks / (tensor * pipeline)",
                  .backends = everywhere,
                  .parts = layout_parts,
                  .parse = parse_layout,
                  .print = print_layout,
                  .environment_name = ""});
  rows.push_back({.name = "ranks",
                  .unit = "ranks",
                  .allowed = "all, or a whole number",
                  .help = "use the first N ranks, the others idle: a scaling curve from one allocation",
                  .backends = everywhere,
                  .parts = {},
                  .parse = [](Settings& s, auto text) { s.ranks = within_or_word(text, "all", max_ranks); },
                  .print = [](const Settings& s) { return s.ranks == 0 ? "all" : fmt::format("{}", s.ranks); },
                  .environment_name = ""});
  rows.push_back({.name = "overlap_grad_reduce",
                  .unit = "",
                  .allowed = "true, false",
                  .help = "reduce gradients bucket by bucket behind the backward pass, or all of them after it",
                  .backends = everywhere,
                  .parts = {},
                  .parse = [](Settings& s, auto text) { s.overlap_grad_reduce = parse_bool(text); },
                  .print = [](const Settings& s) { return s.overlap_grad_reduce ? "true" : "false"; },
                  .without_effect = without_data_parallel,
                  .environment_name = ""});
  rows.push_back({.name = "bucket_size",
                  .unit = "B",
                  .allowed = "a size such as 25 MiB",
                  .help = "bytes of fp32 gradients that are reduced together",
                  .backends = everywhere,
                  .parts = {},
                  .parse =
                      [](Settings& s, auto text) {
                        const std::int64_t bytes = parse_bytes(text);
                        if (bytes < min_bucket_bytes) fail("found {}; allowed: 1 KiB or more", quote(text));
                        s.bucket_size_bytes = bytes;
                      },
                  .print = [](const Settings& s) { return print_bytes_exact(s.bucket_size_bytes); },
                  .without_effect = without_data_parallel,
                  .environment_name = ""});
  rows.push_back(
      {.name = "allreduce_algorithm",
       .unit = "",
       .allowed = "ring, halving_doubling, bcube",
       .help = "Gloo's algorithm for all-reduces above 4 KiB (NCCL's is nccl_algo)",
       .backends = only_cpu,
       .parts = {},
       .parse = [](Settings& s, auto text) { s.allreduce_algorithm = parse_choice(text, allreduce_choices); },
       .print = [](const Settings& s) { return print_choice(s.allreduce_algorithm, allreduce_choices); },
       .without_effect = without_communication,
       .environment_name = ""});
  rows.push_back({.name = "threads",
                  .unit = "threads",
                  .allowed = "auto, or a whole number",
                  .help = "compute threads per rank; auto is cores / ranks on the node",
                  .backends = only_cpu,
                  .parts = {},
                  .parse = [](Settings& s, auto text) { s.threads = within_or_word(text, "auto", max_threads); },
                  .print = [](const Settings& s) { return s.threads == 0 ? "auto" : fmt::format("{}", s.threads); },
                  .environment_name = ""});
  rows.push_back({.name = "repeat_batch",
                  .unit = "",
                  .allowed = "true, false",
                  .help = "train every step on the first step's batch, so that the loss must fall",
                  .backends = everywhere,
                  .parts = {},
                  .parse = [](Settings& s, auto text) { s.repeat_batch = parse_bool(text); },
                  .print = [](const Settings& s) { return s.repeat_batch ? "true" : "false"; },
                  .environment_name = ""});
  rows.push_back(nccl_variable(
      "nccl_algo", "NCCL_ALGO",
      "default, Ring, Tree, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT, or by function: AllReduce:Tree,Ring",
      "NCCL's algorithm. A bare one binds all functions and, since NCCL 2.24, a function that lacks it fails: "
      "write AllReduce:Tree, not Tree",
      canonical_nccl_algo));
  rows.push_back(
      nccl_variable("nccl_proto", "NCCL_PROTO", "default, LL, LL128, Simple, or by function: AllReduce:LL128",
                    "NCCL's protocol. NVLS, CollNet and PAT know Simple only; forcing LL128 on hardware that "
                    "NCCL does not choose it for can corrupt data",
                    canonical_nccl_proto));
  return rows;
}

}  // namespace

const char* name_of(BackendKind kind) {
  return backend_choices.at(static_cast<std::size_t>(kind)).first;
}

BackendKind parse_backend(std::string_view text) {
  return parse_choice(text, backend_choices);
}

std::span<const Variable> registry() {
  static const std::vector<Variable> rows = make_registry();
  return rows;
}

const Variable* find_variable(std::string_view name) {
  for (const Variable& v : registry()) {
    if (v.name == name) return &v;
  }
  return nullptr;
}

std::vector<std::string> variable_names() {
  std::vector<std::string> names;
  names.reserve(registry().size());
  for (const Variable& v : registry()) names.push_back(v.name);
  return names;
}

}  // namespace harness
