#include "config/frameworks/framework.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "config/registry.h"
#include "nccl/values.h"

namespace harness::config {
namespace {

constexpr std::string_view model_section = "model";

// "layout" of "layout.tensor_parallel".
std::string_view variable_of(const FrameworkRow& row) {
  return std::string_view(row.here).substr(0, row.here.find('.'));
}

// Returns the value of a variable, or of a part of one, as the registry prints it; "" for a part that it leaves out.
std::string printed(std::string_view here, const Settings& settings) {
  const std::size_t dot = here.find('.');
  std::string whole = find_variable(here.substr(0, dot))->print(settings);
  if (dot == std::string_view::npos) return whole;
  return value_of(parse_map(whole).value_or(NameValues()), here.substr(dot + 1));
}

// Returns their value for one of ours by `values` alone.
std::optional<std::string> translated(const FrameworkRow& row, const std::string& ours) {
  if (ours.empty()) return std::nullopt;
  if (row.values.empty()) return ours;
  const auto found = std::ranges::find(row.values, ours, &std::pair<std::string, std::string>::second);
  return found == row.values.end() ? std::nullopt : std::optional(found->first);
}

std::optional<std::string> theirs_of(const FrameworkRow& row, const Settings& s) {
  if (row.read_only || row.key.empty() || (row.only_if && !row.only_if(s))) return std::nullopt;
  return row.print ? row.print(s) : translated(row, printed(row.here, s));
}

void add_note(std::string& notes, const std::string& note) {
  if (note.empty() || notes.find(note) != std::string::npos) return;
  notes += (notes.empty() ? "" : "; ") + note;
}

// Returns the word of a path that users look for: "bf16" of "bf16.enabled", "seq_len" of "training.seq_len".
std::string word_of_path(std::string_view path) {
  static constexpr std::array<std::string_view, 4> general{"enabled", "enable", "stage", "mode"};
  std::vector<std::string_view> words = split(path, '.');
  if (words.size() > 1 && std::ranges::find(general, words.back()) != general.end()) words.pop_back();
  return key_words(words.back());
}

// Returns "precision: bf16" if the key implies a value, too.
std::string place_here(const FrameworkRow& row) {
  const bool one_value = row.values.size() == 1 && row.values.front().first.empty();
  return one_value ? fmt::format("{}: {}", row.here, row.values.front().second) : row.here;
}

// Names from Hugging Face, benchmarks and common usage.

constexpr std::array<Hint, 38> others{{
    {"model.layers", "num_hidden_layers n_layer n_layers"},
    {"model.hidden", "n_embd d_model dim"},
    {"model.heads", "num_heads n_head n_heads"},
    {"model.vocab", "vocab_size"},
    {"model.sequence", "sequence_length block_size max_seq_len"},
    {"model.kv_heads", "num_key_value_heads num_kv_heads n_kv_heads"},
    {"model.ffn", "intermediate_size"},
    {"model.activation", "hidden_act"},
    {"model.tied_embeddings", "tie_word_embeddings"},
    {"model.biases", "add_bias_linear"},
    {"measure.steps", "iterations iters"},
    {"measure.rounds", "repeats runs"},
    {"measure.warmup_steps", "warmup_iters warmup"},
    {"measure.smallest_effect", "threshold"},
    {"precision", "dtype params_dtype mixed_precision fp8_format fp8_recipe enable_fp8"},
    {"global_batch_size", "gbs"},
    {"micro_batch_size", "mbs per_device_train_batch_size device_train_microbatch_size"},
    {"gradient_accumulation", "accumulate_grad_batches"},
    {"layout.tensor_parallel", "tensor_parallel_size tp_size tp"},
    {"layout.pipeline_parallel", "pipeline_parallel_size pp_size pp"},
    {"layout.context_parallel", "context_parallel_size context_parallel_degree cp cp_size"},
    {"tp_overlap", "tp_comm_overlap ub_tp_comm_overlap"},
    {"pipeline_schedule", "pp_schedule schedule pipe_schedule"},
    {"virtual_pipeline", "virtual_pipeline_model_parallel_size virtual_pipeline_parallel_size vpp"},
    {"ranks (a variable), or as many as mpirun starts", "world_size nranks num_gpus"},
    {"fusion", "torch_compile bias_gelu_fusion bias_dropout_fusion"},
    {"recompute: full", "activation_checkpointing gradient_checkpointing"},
    {"sharding", "zero_stage reshard_after_forward"},
    {"sharding: parameters", "fsdp fully_shard zero3"},
    {"sharding: gradients", "zero2"},
    {"sharding: optimizer", "zero1 distributed_optimizer"},
    {"sharding_group: node", "hybrid_shard hsdp hpz mics"},
    {"prefetch_layers", "forward_prefetch backward_prefetch"},
    {"grad_reduce_precision", "reduce_dtype"},
    {"bucket_size", "bucket_cap_mb"},
    {"data_file", "dataset_path data_loading train_data"},
    {"loader_workers", "num_workers dataloader_num_workers"},
    {"loader_prefetch", "prefetch_factor dataloader_prefetch_factor"},
}};

}  // namespace

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
  std::vector<std::string> left_out;
  for (const FrameworkRow& row : rows_of(framework)) {
    if (variable_of(row) != variable) continue;
    add_note(unwritten, row.unwritten.for_settings(settings));
    NameValues keys = row.beside ? row.beside(settings) : NameValues();
    if (const auto value = theirs_of(row, settings)) keys.emplace(keys.begin(), row.key, *value);
    if (!keys.empty()) {
      words.flags.insert(words.flags.end(), keys.begin(), keys.end());
      add_note(words.note, row.note.for_settings(settings));
    } else if (!row.read_only && !row.key.empty()) {
      left_out.push_back(row.key);
    }
  }
  if (words.known()) return words;
  words.note = std::move(unwritten);
  if (!words.note.empty() || left_out.empty()) return words;
  const std::string ours = printed(variable, settings);
  if (ours == "false" || ours == default_of(*find_variable(variable))) words.note = "omit " + join(left_out, ", ");
  return words;
}

NameValues model_words_in(Framework framework, const Model& model) {
  const Model whole = model.resolved();
  const NameValues texts = texts_of(whole);
  NameValues words;
  for (const FrameworkRow& row : rows_of(framework)) {
    if (variable_of(row) != model_section || row.read_only) continue;
    const std::string ours = value_of(texts, row.here.substr(model_section.size() + 1));
    const auto value = row.print_model ? row.print_model(whole) : translated(row, ours);
    if (value) words.emplace_back(row.key, *value);
  }
  return words;
}

KnownElsewhere known_elsewhere_as(std::string_view key) {
  const std::string word = key_words(key);
  const auto here = [](const std::string& name) { return KnownElsewhere{name, "here it is " + name}; };
  for (const Variable& variable : registry()) {
    if (!variable.environment_name.empty() && lower(variable.environment_name) == word) return here(variable.name);
    if (std::ranges::find(variable.parts, word) != variable.parts.end() && variable.name == "layout")
      return {"", fmt::format("it is a part of {0}: {0}: {{{1}: 2}}", variable.name, word)};
  }
  for (const Framework framework : frameworks) {
    for (const FrameworkRow& row : rows_of(framework)) {
      const bool another_name = !row.key.empty() && word != row.here;  // else the key is only misplaced
      if (another_name && word_of_path(row.key) == word) return here(place_here(row));
    }
  }
  if (const std::string_view answer = answer_of(others, word); !answer.empty()) return here(std::string(answer));
  if (const std::string nccl_name = upper(word); nccl::knows(nccl_name))
    return {"", fmt::format("it is a variable of NCCL: env: {{{}: VALUE}}", nccl_name)};
  return {"", nothing_like(key)};
}

}  // namespace harness::config
