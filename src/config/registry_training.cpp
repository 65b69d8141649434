#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "config/choice.h"
#include "config/fields.h"
#include "config/registry_rows.h"

namespace harness::config {
namespace {

constexpr int max_ranks = 1 << 20;

std::vector<std::string> layout_parts() {
  std::vector<std::string> parts;
  for (const program::Axis axis : program::set_axes) parts.emplace_back(program::row_of(axis).key);
  return parts;
}

// "{tensor_parallel: 2, pipeline_parallel: 1}", with the size of an axis as `size` prints it.
template <class Size>
std::string layout_text(Size size) {
  std::vector<std::string> parts;
  for (const program::Axis axis : program::set_axes) {
    parts.push_back(fmt::format("{}: {}", program::row_of(axis).key, size(axis)));
  }
  return fmt::format("{{{}}}", join(parts, ", "));
}

std::string print_layout(const Settings& s) {
  return layout_text([&](program::Axis axis) { return s.layout[axis]; });
}

// As print_layout() has it, or any part of it.
void parse_layout(Settings& settings, std::string_view text) {
  program::Layout layout = settings.layout;
  const std::string example = layout_text([](program::Axis axis) { return axis == program::set_axes[0] ? 2 : 1; });
  each_part(text, example, [&](std::string_view key, std::string_view value) {
    const auto has_key = [&](program::Axis axis) { return key == program::row_of(axis).key; };
    const auto* axis = std::ranges::find_if(program::set_axes, has_key);
    if (axis == program::set_axes.end()) {
      fail("found {}; allowed: {}{}", quote(key), program::set_axis_keys(), did_you_mean(nearest(key, layout_parts())));
    }
    layout[*axis] = static_cast<int>(parse_within(value, 1, max_ranks));
  });
  settings.layout = layout;
}

std::string without_data_parallel(const Settings& s) {
  const bool alone = s.ranks != 0 && s.ranks == s.replica_ranks();
  return alone ? "data_parallel is 1, so there are no gradients to reduce" : "";
}

// Buckets are what is reduced together, and what overlap_optimizer updates together.
std::string without_buckets(const Settings& s) {
  return s.overlap_optimizer ? "" : without_data_parallel(s);
}

std::string needs_tensor_cores(const Settings& s, BackendKind backend) {
  if (s.precision != Precision::tf32 || backend != BackendKind::cpu) return "";
  return "backend cpu has no tf32, which needs the tensor cores of a GPU; allowed on cpu: fp32, bf16";
}

constexpr std::int64_t max_batch = std::int64_t{1} << 31;
constexpr std::int64_t min_bucket_bytes = 1024;

}  // namespace

// docs/adding.md walks through one.
std::vector<Variable> training_variables() {
  std::vector<Variable> rows;
  rows.push_back(
      {.name = "precision",
       .unit = "",
       .allowed = "fp32, bf16, tf32",
       .help = "number format of matrix products; bf16 keeps fp32 master weights, tf32 is fp32 that a GPU's tensor "
               "cores multiply with 10-bit mantissas",
       .backends = everywhere,
       .parts = {},
       .parse = [](Settings& s, auto text) { s.precision = parse_choice(text, precision_choices); },
       .print = [](const Settings& s) { return print_choice(s.precision, precision_choices); },
       .environment_name = "",
       .refused_by = needs_tensor_cores});
  rows.push_back({.name = "global_batch_size",
                  .unit = "sequences",
                  .allowed = "a whole number",
                  .help = "sequences per step, over all ranks",
                  .backends = everywhere,
                  .parts = {},
                  .parse = [](Settings& s, auto text) { s.global_batch_size = parse_within(text, 1, max_batch); },
                  .print = [](const Settings& s) { return fmt::format("{}", s.global_batch_size); },
                  .environment_name = "",
                  .workloads = only_gpt});
  rows.push_back({.name = "micro_batch_size",
                  .unit = "sequences",
                  .allowed = "a whole number",
                  .help = "sequences per forward pass of one rank; the global batch is unchanged, gradients accumulate",
                  .backends = everywhere,
                  .parts = {},
                  .parse = [](Settings& s, auto text) { s.micro_batch_size = parse_within(text, 1, max_batch); },
                  .print = [](const Settings& s) { return fmt::format("{}", s.micro_batch_size); },
                  .environment_name = "",
                  .workloads = only_gpt});
  rows.push_back({.name = "layout",
                  .unit = "",
                  .allowed = layout_text([](program::Axis) { return 'N'; }),
                  .help = "how the model is cut; data_parallel is what remains: ranks / (tensor * pipeline)",
                  .backends = everywhere,
                  .parts = layout_parts(),
                  .parse = parse_layout,
                  .print = print_layout,
                  .environment_name = "",
                  .workloads = communicating});
  rows.push_back({.name = "ranks",
                  .unit = "ranks",
                  .allowed = "all, or a whole number",
                  .help = "use the first N ranks and leave the others idle: a scaling curve from one allocation",
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
                  .environment_name = "",
                  .workloads = only_gpt});
  rows.push_back({.name = "bucket_size",
                  .unit = "B",
                  .allowed = "a size such as 25 MiB",
                  .help = "bytes of fp32 gradients that are reduced, or updated, together",
                  .backends = everywhere,
                  .parts = {},
                  .parse =
                      [](Settings& s, auto text) {
                        const std::int64_t bytes = parse_bytes(text);
                        if (bytes < min_bucket_bytes) fail("found {}; allowed: 1 KiB or more", quote(text));
                        s.bucket_size_bytes = bytes;
                      },
                  .print = [](const Settings& s) { return print_bytes_exact(s.bucket_size_bytes); },
                  .without_effect = without_buckets,
                  .environment_name = "",
                  .workloads = only_gpt});
  rows.push_back({.name = "overlap_optimizer",
                  .unit = "",
                  .allowed = "true, false",
                  .help = "update the weights bucket by bucket beside the backward pass, or all of them after it",
                  .backends = everywhere,
                  .parts = {},
                  .parse = [](Settings& s, auto text) { s.overlap_optimizer = parse_bool(text); },
                  .print = [](const Settings& s) { return s.overlap_optimizer ? "true" : "false"; },
                  .environment_name = "",
                  .workloads = only_gpt});
  rows.push_back({.name = "repeat_batch",
                  .unit = "",
                  .allowed = "true, false",
                  .help = "train every step on the first step's batch, so that the loss must fall",
                  .backends = everywhere,
                  .parts = {},
                  .parse = [](Settings& s, auto text) { s.repeat_batch = parse_bool(text); },
                  .print = [](const Settings& s) { return s.repeat_batch ? "true" : "false"; },
                  .environment_name = "",
                  .workloads = only_gpt});
  return rows;
}

}  // namespace harness::config
