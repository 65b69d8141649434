// Rows for how ranks partition the model, and for sharding among replicas.
#include <algorithm>

#include "base/units.h"
#include "config/registry_rows.h"

namespace harness::config {
namespace {

// The axes that a configuration may name; the last one is for predictions only.
constexpr std::array layout_axes{program::Axis::tensor, program::Axis::pipeline, program::Axis::context};

std::vector<std::string> layout_parts() {
  return texts_of_all(layout_axes, [](program::Axis axis) { return program::row_of(axis).key; });
}

// Prints the context axis only if it has several ranks.
std::string print_layout(const Settings& s) {
  NameValues parts;
  for (const program::Axis axis : layout_axes) {
    if (axis == program::Axis::context && s.context() == 1) continue;
    parts.emplace_back(program::row_of(axis).key, std::to_string(s.layout[axis]));
  }
  return print_map(parts);
}

// Parses the form of print_layout(), or any part of it. A whole layout without the context axis sets it to one rank.
void parse_layout(Settings& settings, std::string_view text) {
  program::Layout layout = settings.layout;
  const NameValues parts = parts_of(text, "{tensor_parallel: 2, pipeline_parallel: 1}");
  const auto names = [&](program::Axis axis) { return !value_of(parts, program::row_of(axis).key).empty(); };
  if (names(program::Axis::tensor) && names(program::Axis::pipeline)) layout[program::Axis::context] = 1;
  for (const auto& [key, size] : parts)
    layout[layout_axes[word_index(key, layout_parts())]] = static_cast<int>(parse_within(size, 1, max_ranks));
  settings.layout = layout;
}

// ---- rank_order: the axes, fastest first. The context axis directly follows the tensor axis.

constexpr auto rank_orders = [] {
  using enum program::Axis;
  return std::array<Choice<program::AxisOrder>, 6>{{{"tp-dp-pp", {tensor, context, data, pipeline}},
                                                    {"tp-pp-dp", {tensor, context, pipeline, data}},
                                                    {"dp-tp-pp", {data, tensor, context, pipeline}},
                                                    {"dp-pp-tp", {data, pipeline, tensor, context}},
                                                    {"pp-tp-dp", {pipeline, tensor, context, data}},
                                                    {"pp-dp-tp", {pipeline, data, tensor, context}}}};
}();

// Megatron-LM also names the axes cp and ep, which have no effect here.
void parse_rank_order(Settings& settings, std::string_view text) {
  std::vector<std::string> axes = split_text(lower(text), "-");
  std::erase_if(axes, [](const std::string& axis) { return axis == "cp" || axis == "ep"; });
  settings.layout.order = parse_choice(join(axes, "-"), rank_orders);
}

std::string context_refused_by(const Settings& s, BackendKind backend) {
  if (s.context() == 1 || traits_of(backend).predicts()) return "";
  return fmt::format("backend {} has no context_parallel, whose ranks share a sequence; backend sim predicts it",
                     name_of(backend));
}

std::string without_two_axes(const Settings& s) {
  const auto cut = std::ranges::count_if(s.layout.size, [](int size) { return size > 1; });
  const bool replicas = s.ranks == 0 || s.ranks > s.replica_ranks();
  if (cut + (replicas ? 1 : 0) > 1) return "";
  return "the ranks stand along one axis";
}

// ---- The order of a pipeline stage's passes.

constexpr std::array<Choice<PipelineSchedule>, 3> schedule_choices{
    {{"1f1b", PipelineSchedule::one_forward_one_backward},
     {"gpipe", PipelineSchedule::gpipe},
     {"interleaved", PipelineSchedule::interleaved}}};
constexpr int max_chunks = 1024;

std::string schedule_conflict(const Settings& s) {
  if (s.pipeline_schedule != PipelineSchedule::interleaved || s.layout[program::Axis::pipeline] > 1) return "";
  return fmt::format("pipeline_schedule {} needs two stages or more; change pipeline_parallel (layout) with it",
                     word_of(s.pipeline_schedule, schedule_choices));
}

std::string chunks_conflict(const Settings& s) {
  if (s.virtual_pipeline == 0 || s.pipeline_schedule == PipelineSchedule::interleaved) return "";
  return fmt::format("virtual_pipeline {} needs pipeline_schedule interleaved, not {}; change both together (combine)",
                     s.virtual_pipeline, word_of(s.pipeline_schedule, schedule_choices));
}

// ---- Sharding among replicas, and their exchange.

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
constexpr std::array<Choice<GradCompression>, 2> compression_choices{
    {{"none", GradCompression::none}, {"topk", GradCompression::top_k}}};

std::string compression_conflict(const Settings& s) {
  if (s.grad_compression == GradCompression::none) return "";
  if (s.sharding != Sharding::none) {
    return fmt::format("grad_compression {} needs sharding none, not {}: each replica keeps what it did not send",
                       word_of(s.grad_compression, compression_choices), word_of(s.sharding, sharding_choices));
  }
  if (s.precision == Precision::fp16) {
    return fmt::format(
        "grad_compression {} does not go with precision fp16: what a replica did not send keeps the loss scale of its "
        "step, and an overflow stays in it",
        word_of(s.grad_compression, compression_choices));
  }
  if (s.grad_reduce_type == program::DType::f32) return "";
  return fmt::format("grad_compression {} sends its values in fp32; it needs grad_reduce_precision fp32, not {}",
                     word_of(s.grad_compression, compression_choices), word_of(s.grad_reduce_type, type_choices));
}

// With n gradients, d replicas gather 8 bytes for each of ratio * n from each other, so each sends (d - 1) * 8 ratio n.
// A ring all-reduce sends 2 (d - 1) / d * 4 n.
std::string more_than_saved(const Settings& s) {
  if (s.grad_compression == GradCompression::none || s.ranks == 0 || has_one_replica(s)) return "";
  const double replicas = static_cast<double>(s.ranks) / static_cast<double>(s.replica_ranks()) * s.context();
  if (s.grad_compression_ratio < 1 / replicas) return "";
  return fmt::format(
      "grad_compression {} sends more than it saves: {:.6g} replicas gather the values and indices of each, which is "
      "less than their all-reduce only with a grad_compression_ratio below {:.3g} %",
      word_of(s.grad_compression, compression_choices), replicas, 100 / replicas);
}

double parse_ratio(std::string_view text) {
  return parse_if(text, parse_share, is_share, "above 0 % and at most 100 %");
}

std::string without_compression(const Settings& s) {
  if (s.grad_compression == GradCompression::none) return "grad_compression is none, so all gradients are sent";
  return without_data_parallel(s);
}

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

std::vector<Variable> layout_variables() {
  return {
      {.name = "layout",
       .allowed = "{tensor_parallel: N, pipeline_parallel: N}",
       .examples = {"{tensor_parallel: 2}", "{tensor_parallel: 4}"},
       .help = "how the model is cut; data_parallel is what remains: ranks / (tensor * pipeline). In a prediction, "
               "context_parallel: N cuts each sequence; a layout of the other two sizes has 1",
       .parts = layout_parts(),
       .parse = parse_layout,
       .print = print_layout,
       .acts_on = {Part::matrix_products, Part::attention, Part::other_compute, Part::tensor, Part::pipeline,
                   Part::data, Part::embedding, Part::bubble, Part::idle},
       .refused_by = context_refused_by,
       .workloads = communicating},
      {.name = "rank_order",
       .choices = {words_of(rank_orders), true},
       .help = "how ranks are numbered along the axes of the layout, fastest first: which of them share a node",
       .parse = parse_rank_order,
       .print = [](const Settings& s) { return word_of(s.layout.order, rank_orders); },
       .acts_on = {Part::tensor, Part::pipeline, Part::data, Part::embedding},
       .without_effect = without_two_axes,
       .workloads = communicating},
      one_of(&Settings::pipeline_schedule, schedule_choices,
             {.name = "pipeline_schedule",
              .help = "the order of a pipeline stage's passes",
              .acts_on = {Part::bubble, Part::pipeline},
              .without_effect = only_along(program::Axis::pipeline,
                                           "pipeline_parallel is 1: there is no bubble, only memory can differ"),
              .conflict = schedule_conflict}),
      whole_or("auto", &Settings::virtual_pipeline, 2, max_chunks,
               {.name = "virtual_pipeline",
                .help = "chunks of layers on each stage with pipeline_schedule interleaved, which divide the bubble "
                        "and multiply the messages between stages; auto is 2 there",
                .acts_on = {Part::bubble, Part::pipeline},
                .without_effect = only_with(&Settings::pipeline_schedule, PipelineSchedule::interleaved,
                                            "pipeline_schedule is not interleaved, so a stage is one chunk"),
                .conflict = chunks_conflict}),
  };
}

std::vector<Variable> sharding_variables() {
  return {
      one_of(&Settings::sharding, sharding_choices,
             {.name = "sharding",
              .help = "what the data-parallel replicas divide among them instead of each holding it whole: nothing; "
                      "the optimizer's state; also the gradients, reduced after each micro-batch; also the weights, "
                      "gathered layer by layer for each pass",
              .acts_on = {Part::other_compute, Part::data},
              .without_effect = without_replicas}),
      one_of(
          &Settings::sharding_group, group_choices,
          {.name = "sharding_group",
           .help = "the replicas that divide what sharding names: all of them, or those that share a node, so that "
                   "each node has all of it and nodes exchange no more than the sums of their parts of the gradients",
           .acts_on = {Part::other_compute, Part::data},
           .without_effect = without_group}),
      true_or_false(&Settings::overlap_param_gather,
                    {.name = "overlap_param_gather",
                     .help = "with sharding: optimizer or gradients, gather the weights of a bucket behind the layers "
                             "that come before its first use, or all of them before the first layer",
                     .acts_on = {Part::data},
                     .fastest = "true",
                     .without_effect = without_gathered_buckets,
                     .conflict = gather_conflict}),
      whole(&Settings::prefetch_layers, 0, max_prefetch,
            {.name = "prefetch_layers",
             .allowed = "a number from 0",
             .examples = {"2", "4"},
             .help = "with sharding: parameters, how many layers ahead of their use weights are gathered; each takes "
                     "the memory of a layer's weights",
             .acts_on = {Part::data},
             .without_effect = without_gathered_layers}),
      one_of(&Settings::grad_reduce_type, type_choices,
             {.name = "grad_reduce_precision",
              .help = "number format in which replicas exchange and sum up gradients; each adds its micro-batches up "
                      "and updates weights in fp32",
              .acts_on = {Part::data},
              .fastest = "bf16",
              .mathematics = Mathematics::rounded,
              .without_effect = without_data_parallel}),
      one_of(&Settings::grad_compression, compression_choices,
             {.name = "grad_compression",
              .help = "the gradients that replicas exchange: all of them, or with topk a share of each bucket, those "
                      "of the largest magnitude; what a replica does not send it adds to its gradients of the next "
                      "step",
              .acts_on = {Part::data},
              .mathematics = Mathematics::another,
              .without_effect = without_data_parallel,
              .caution = more_than_saved,
              .conflict = compression_conflict}),
      {.name = "grad_compression_ratio",
       .allowed = "a share above 0 and up to 1, such as 1 %",
       .examples = {"0.1 %", "10 %"},
       .help = "with grad_compression: topk, the share of a bucket's gradients that a replica sends, at least one",
       .parse = [](Settings& s, auto text) { s.grad_compression_ratio = parse_ratio(text); },
       .print = [](const Settings& s) { return print_share_exact(s.grad_compression_ratio); },
       .acts_on = {Part::data},
       .mathematics = Mathematics::another,
       .without_effect = without_compression},
  };
}

}  // namespace harness::config
