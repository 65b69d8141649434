#include "config/frameworks/framework.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "config/missing.h"
#include "config/registry.h"
#include "nccl/names.h"

namespace harness::config {
namespace {

// PyTorch's arguments are no names by which people look for a setting: "backends", "device_type".
constexpr std::array<Framework, 3> with_telling_keys{Framework::megatron, Framework::deepspeed, Framework::torchtitan};

// "layout" of "layout.tensor_parallel".
std::string_view variable_of(const FrameworkRow& row) {
  return std::string_view(row.here).substr(0, row.here.find('.'));
}

std::optional<std::string> theirs_of(const FrameworkRow& row, const Settings& s) {
  if (row.read_only || row.key.empty()) return std::nullopt;
  if (row.print) return row.print(s);
  const std::string ours = printed(variable_of(row), s);
  if (row.values.empty()) return ours;
  const auto found = std::ranges::find(row.values, ours, &std::pair<std::string, std::string>::second);
  return found == row.values.end() ? std::nullopt : std::optional(found->first);
}

void add_note(std::string& notes, const std::string& note) {
  if (note.empty() || notes.find(note) != std::string::npos) return;
  notes += (notes.empty() ? "" : "; ") + note;
}

// The word of a path by which people look for it: "bf16" of "bf16.enabled", "seq_len" of "training.seq_len".
std::string word_of_path(std::string_view path) {
  static constexpr std::array<std::string_view, 4> general{"enabled", "enable", "stage", "mode"};
  std::vector<std::string_view> words = split(path, '.');
  if (words.size() > 1 && std::ranges::find(general, words.back()) != general.end()) words.pop_back();
  return key_words(words.back());
}

// "precision: bf16" where the key says a value, too.
std::string place_here(const FrameworkRow& row) {
  const bool one_value = row.values.size() == 1 && row.values.front().first.empty();
  return one_value ? fmt::format("{}: {}", row.here, row.values.front().second) : row.here;
}

// Names from Hugging Face, benchmarks and daily speech.
constexpr const char* ranks_or_launcher = "ranks (a variable), or as many as mpirun starts";
constexpr std::array<std::pair<std::string_view, std::string_view>, 76> others{{
    {"num_hidden_layers", "model.layers"},
    {"n_layer", "model.layers"},
    {"n_layers", "model.layers"},
    {"n_embd", "model.hidden"},
    {"d_model", "model.hidden"},
    {"dim", "model.hidden"},
    {"num_heads", "model.heads"},
    {"n_head", "model.heads"},
    {"n_heads", "model.heads"},
    {"vocab_size", "model.vocab"},
    {"sequence_length", "model.sequence"},
    {"block_size", "model.sequence"},
    {"max_seq_len", "model.sequence"},
    {"num_key_value_heads", "model.kv_heads"},
    {"num_kv_heads", "model.kv_heads"},
    {"n_kv_heads", "model.kv_heads"},
    {"intermediate_size", "model.ffn"},
    {"hidden_act", "model.activation"},
    {"tie_word_embeddings", "model.tied_embeddings"},
    {"add_bias_linear", "model.biases"},
    {"iterations", "measure.steps"},
    {"iters", "measure.steps"},
    {"repeats", "measure.rounds"},
    {"runs", "measure.rounds"},
    {"warmup_iters", "measure.warmup_steps"},
    {"warmup", "measure.warmup_steps"},
    {"threshold", "measure.smallest_effect"},
    {"dtype", "precision"},
    {"params_dtype", "precision"},
    {"mixed_precision", "precision"},
    {"gbs", "global_batch_size"},
    {"mbs", "micro_batch_size"},
    {"per_device_train_batch_size", "micro_batch_size"},
    {"device_train_microbatch_size", "micro_batch_size"},
    {"accumulate_grad_batches", "gradient_accumulation"},
    {"tensor_parallel_size", "layout.tensor_parallel"},
    {"tp_size", "layout.tensor_parallel"},
    {"tp", "layout.tensor_parallel"},
    {"pipeline_parallel_size", "layout.pipeline_parallel"},
    {"pp_size", "layout.pipeline_parallel"},
    {"pp", "layout.pipeline_parallel"},
    {"pp_schedule", "pipeline_schedule"},
    {"schedule", "pipeline_schedule"},
    {"pipe_schedule", "pipeline_schedule"},
    {"virtual_pipeline_model_parallel_size", "virtual_pipeline"},
    {"virtual_pipeline_parallel_size", "virtual_pipeline"},
    {"vpp", "virtual_pipeline"},
    {"world_size", ranks_or_launcher},
    {"nranks", ranks_or_launcher},
    {"num_gpus", ranks_or_launcher},
    {"torch_compile", "fusion"},
    {"activation_checkpointing", "recompute: full"},
    {"gradient_checkpointing", "recompute: full"},
    {"zero_stage", "sharding"},
    {"fsdp", "sharding: parameters"},
    {"fully_shard", "sharding: parameters"},
    {"zero3", "sharding: parameters"},
    {"zero2", "sharding: gradients"},
    {"zero1", "sharding: optimizer"},
    {"distributed_optimizer", "sharding: optimizer"},
    {"hybrid_shard", "sharding_group: node"},
    {"hsdp", "sharding_group: node"},
    {"hpz", "sharding_group: node"},
    {"mics", "sharding_group: node"},
    {"forward_prefetch", "prefetch_layers"},
    {"backward_prefetch", "prefetch_layers"},
    {"reduce_dtype", "grad_reduce_precision"},
    {"cpu_bind", "host_binding"},
    {"bind_to", "host_binding"},
    {"numa_binding", "host_binding"},
    {"bind_cores_to_rank", "host_binding: core"},
    {"bias_gelu_fusion", "fusion"},
    {"bias_dropout_fusion", "fusion"},
    {"bucket_cap_mb", "bucket_size"},
    {"reshard_after_forward", "sharding"},
}};

}  // namespace

std::span<const FrameworkRow> rows_of(Framework framework) {
  static const std::array<std::vector<FrameworkRow>, 4> tables{megatron::rows(), deepspeed::rows(), torchtitan::rows(),
                                                               pytorch::rows()};
  return tables.at(static_cast<std::size_t>(framework));
}

std::optional<std::string> parse_theirs(const FrameworkRow& row, std::string_view theirs) {
  if (row.parse) return row.parse(theirs);
  if (row.values.empty()) return row.print || row.print_model ? std::nullopt : std::optional(std::string(theirs));
  std::vector<std::string> known;
  for (const auto& [their, our] : row.values) {
    if (their == theirs) return our;
    known.push_back(their);
  }
  fail("{} {} has no equivalent; known: {}", row.key, quote(theirs), join(known, ", "));
}

FrameworkWords words_in(Framework framework, std::string_view variable, const Settings& settings) {
  FrameworkWords words;
  std::string unwritten;
  for (const FrameworkRow& row : rows_of(framework)) {
    if (variable_of(row) != variable) continue;
    add_note(unwritten, row.unwritten.for_settings(settings));
    const auto value = theirs_of(row, settings);
    if (!value) continue;
    words.flags.emplace_back(row.key, *value);
    add_note(words.note, row.note.for_settings(settings));
  }
  if (!words.known()) words.note = std::move(unwritten);
  return words;
}

NameValues model_words_in(Framework framework, const Model& model) {
  const Model whole = model.resolved();
  NameValues words;
  for (const FrameworkRow& row : rows_of(framework)) {
    const auto value = row.print_model ? row.print_model(whole) : std::nullopt;
    if (value) words.emplace_back(row.key, *value);
  }
  return words;
}

std::string known_elsewhere_as(std::string_view key) {
  const std::string word = key_words(key);
  for (const Variable& variable : registry()) {
    if (!variable.environment_name.empty() && lower(variable.environment_name) == word)
      return "here it is " + variable.name;
    if (std::ranges::find(variable.parts, word) != variable.parts.end() && variable.name == "layout")
      return fmt::format("it is a part of {0}: {0}: {{{1}: 2}}", variable.name, word);
  }
  for (const Framework framework : with_telling_keys) {
    for (const FrameworkRow& row : rows_of(framework)) {
      const bool another_name = !row.key.empty() && word != row.here;  // else it only stands in the wrong place
      if (another_name && word_of_path(row.key) == word) return "here it is " + place_here(row);
    }
  }
  for (const auto& [name, answer] : others) {
    if (name == word) return "here it is " + std::string(answer);
  }
  std::string nccl_name = word;
  std::ranges::transform(nccl_name, nccl_name.begin(), [](unsigned char c) { return std::toupper(c); });
  if (nccl::knows(nccl_name)) return fmt::format("it is a variable of NCCL: env: {{{}: VALUE}}", nccl_name);
  return nothing_like(key);
}

std::vector<FrameworkRow> joined(const std::vector<std::vector<FrameworkRow>>& families) {
  std::vector<FrameworkRow> all;
  for (const std::vector<FrameworkRow>& family : families) all.insert(all.end(), family.begin(), family.end());
  return all;
}

FrameworkRow switch_row(std::string key, std::string here, std::string ours, Note unwritten, Note note) {
  return {.key = std::move(key),
          .here = std::move(here),
          .values = {{"", std::move(ours)}},
          .note = std::move(note),
          .unwritten = std::move(unwritten)};
}

FrameworkRow known_row(std::string key, std::string here) {
  return {.key = std::move(key), .here = std::move(here), .read_only = true};
}

std::string printed(std::string_view variable, const Settings& settings) {
  return find_variable(variable)->print(settings);
}

std::string bound_by_launcher(const Settings& s) {
  switch (s.host_binding) {
    case HostBinding::automatic:
      return "leave it to the launcher";
    case HostBinding::none:
      return "no argument: mpirun --bind-to none, srun --cpu-bind=none";
    case HostBinding::numa:
      return "no argument: numactl --cpunodebind=N --preferred=N around each rank, N the NUMA node of its GPU";
    case HostBinding::core:
      return "no argument: numactl --physcpubind=CORES --preferred=N around each rank, CORES its own";
  }
  return "";
}

const char* recomputed_module(const Settings& s) {
  return s.recompute == Recompute::full ? "layer" : "layer's attention, from queries, keys and values on,";
}

Note started_by(const char* launcher) {
  return [launcher](const Settings& s) {
    return fmt::format("start it on {} ranks ({})", s.ranks == 0 ? "all" : std::to_string(s.ranks), launcher);
  };
}

std::string elements_of_bucket(const Settings& settings) {
  return std::to_string(settings.bucket_size_bytes / program::size_of(program::DType::f32));
}

std::string bucket_of_elements(std::string_view elements) {
  return print_bytes_exact(parse_integer(elements) * program::size_of(program::DType::f32));
}

}  // namespace harness::config
