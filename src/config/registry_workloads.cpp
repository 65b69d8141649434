// Rows for the workload, and for the operation that a single-operation workload repeats.

#include "config/registry_rows.h"

namespace harness::config {
namespace {

constexpr std::array<Choice<CollectiveKind>, 5> collective_choices{{{"all_reduce", CollectiveKind::all_reduce},
                                                                    {"reduce_scatter", CollectiveKind::reduce_scatter},
                                                                    {"all_gather", CollectiveKind::all_gather},
                                                                    {"all_to_all", CollectiveKind::all_to_all},
                                                                    {"send_recv", CollectiveKind::send_recv}}};
constexpr std::array<Choice<CollectiveOver>, 4> over_choices{{{"world", CollectiveOver::world},
                                                              {"tensor", CollectiveOver::tensor},
                                                              {"data", CollectiveOver::data},
                                                              {"pipeline", CollectiveOver::pipeline}}};
// The transposed operand: none, the first matrix (a weight's gradient), the second (a forward product).
constexpr std::array<Choice<int>, 4> transpose_choices{{{"none", 0}, {"a", 1}, {"b", 2}, {"both", 3}}};
constexpr std::array<Choice<bool>, 2> pass_choices{{{"forward", false}, {"backward", true}}};

const std::vector<std::string> all_workloads(workload_names.begin(), workload_names.end());
const std::vector<std::string> only_collective{"collective"}, only_gemm{"gemm"}, only_attention{"attention"},
    single_operations{"collective", "gemm", "attention"};

constexpr std::int64_t longest_side = std::int64_t{1} << 24;  // along one side
constexpr int max_repetitions = 1000;

const std::vector<std::string> gemm_parts{"m", "n", "k", "transpose"};
const std::vector<std::string> attention_parts{"batch", "heads", "kv_heads", "head_dim", "sequence"};

void parse_gemm(Settings& settings, std::string_view text) {
  GemmShape shape = settings.gemm;
  const std::array sides{&shape.m, &shape.n, &shape.k};
  for (const auto& [key, value] : parts_of(text, "{m: 4096, n: 4096, k: 4096}")) {
    const std::size_t part = word_index(key, gemm_parts);
    if (part < sides.size()) {
      *sides[part] = parse_within(value, 1, longest_side);
    } else {
      const int which = parse_choice(value, transpose_choices);
      shape.transpose_a = (which & 1) != 0;
      shape.transpose_b = (which & 2) != 0;
    }
  }
  settings.gemm = shape;
}

std::string print_gemm(const Settings& s) {
  const int which = (s.gemm.transpose_a ? 1 : 0) + (s.gemm.transpose_b ? 2 : 0);
  return fmt::format("{{m: {}, n: {}, k: {}, transpose: {}}}", s.gemm.m, s.gemm.n, s.gemm.k,
                     word_of(which, transpose_choices));
}

void parse_attention_shape(Settings& settings, std::string_view text) {
  AttentionProblem shape = settings.attention_shape;
  std::int64_t kv_heads = shape.group == 1 ? 0 : shape.kv_heads();  // 0: as many as heads
  constexpr std::string_view example = "{batch: 1, heads: 16, kv_heads: 4, head_dim: 128, sequence: 2048}";
  const std::array sides{&shape.batch, &shape.heads, &kv_heads, &shape.head_dim, &shape.sequence};
  for (const auto& [key, value] : parts_of(text, example)) {
    *sides[word_index(key, attention_parts)] = parse_within(value, 1, longest_side);
  }
  if (kv_heads == 0) kv_heads = shape.heads;
  if (shape.heads % kv_heads != 0) {
    fail("found {}; kv_heads (here {}) must divide heads (here {})", quote(text), kv_heads, shape.heads);
  }
  shape.group = shape.heads / kv_heads;
  settings.attention_shape = shape;
}

std::string print_attention_shape(const Settings& s) {
  const AttentionProblem& a = s.attention_shape;
  return fmt::format("{{batch: {}, heads: {}, kv_heads: {}, head_dim: {}, sequence: {}}}", a.batch, a.heads,
                     a.kv_heads(), a.head_dim, a.sequence);
}

std::string without_place(const Settings& s) {
  const bool two_buffers = s.collective == CollectiveKind::all_to_all || s.collective == CollectiveKind::send_recv;
  return two_buffers ? fmt::format("{} always has two buffers", word_of(s.collective, collective_choices)) : "";
}

}  // namespace

std::vector<Variable> workload_variables() {
  return {
      {.name = "workload",
       .choices = {all_workloads, true},
       .examples = {"collective"},
       .help = "what a step does: a training step, or one operation repeated",
       .parse = [](Settings& s, auto text) { s.workload = all_workloads[word_index(text, all_workloads)]; },
       .print = [](const Settings& s) { return s.workload; },
       .workloads = any_workload,
       .fixed = true},
      one_of(&Settings::collective, collective_choices,
             {.name = "collective",
              .help = "the collective operation; send_recv sends to the next rank along an axis and receives from the "
                      "previous one",
              .workloads = only_collective}),
      one_of(&Settings::collective_over, over_choices,
             {.name = "collective_over",
              .help = "which ranks take part: all of them, or the groups along one axis of the layout, all groups at "
                      "once",
              .workloads = only_collective}),
      number_of_bytes(&Settings::message_bytes, 1,
                      {.name = "message_size",
                       .allowed = "a size such as 25 MiB; under sweep also a range, 8 B..8 GiB x2",
                       .help = "size of the whole buffer, all parts together, as nccl-tests counts it",
                       .purpose = Purpose::size,
                       .workloads = only_collective}),
      true_or_false(&Settings::in_place, {.name = "in_place",
                                          .help = "the result overwrites the input, or has a buffer of its own",
                                          .without_effect = without_place,
                                          .workloads = only_collective}),
      {.name = "gemm",
       .allowed = "{m: N, n: N, k: N, transpose: none, a, b or both}",
       .examples = {"{m: 8192}", "{m: 16384}"},
       .help = "the matrix product out[m, n] = a[m, k] b[k, n]",
       .parts = gemm_parts,
       .parse = parse_gemm,
       .print = print_gemm,
       .purpose = Purpose::size,
       .workloads = only_gemm},
      {.name = "attention_shape",
       .allowed = "{batch: N, heads: N, kv_heads: N, head_dim: N, sequence: N}",
       .examples = {"{batch: 2}", "{batch: 4}"},
       .help = "causal self-attention on one rank; with fewer kv_heads, several heads of queries share one of keys and "
               "values",
       .parts = attention_parts,
       .parse = parse_attention_shape,
       .print = print_attention_shape,
       .purpose = Purpose::size,
       .workloads = only_attention},
      one_of(&Settings::attention_backward, pass_choices,
             {.name = "attention_pass", .help = "which pass of attention to run", .workloads = only_attention}),
      whole(&Settings::repetitions, 1, max_repetitions,
            {.name = "repetitions",
             .examples = {"40", "80"},
             .help = "how often one step runs the operation, one after the other",
             .workloads = single_operations}),
  };
}

}  // namespace harness::config
