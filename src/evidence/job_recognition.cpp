#include <algorithm>
#include <array>

#include "base/text.h"
#include "evidence/lines.h"
#include "evidence/training_job.h"

// Which texts are launch scripts or configurations, and of what software.

namespace harness::evidence {
namespace {

using Text = std::string_view;

// A line that begins like this, blanks before it aside.
bool has_line(Text text, std::initializer_list<Text> beginnings) {
  for (Text line : split(text, '\n')) {
    line = trim(line);
    if (std::ranges::any_of(beginnings, [&](Text beginning) { return line.starts_with(beginning); })) return true;
  }
  return false;
}

constexpr Text nanogpt_names =
    "batch_size|block_size|n_layer|n_head|n_embd|max_iters|wandb_log|gradient_accumulation_steps|eval_iters|"
    "weight_decay|init_from|lr_decay_iters";

struct Mark {
  Text framework, key;  // with a point at its end a section
};
// Keys that name their framework, the surest first.
const std::vector<Mark>& marks() {
  static constexpr std::array<Mark, 15> rows{{
      {"gpt-neox", "pipe_parallel_size|pipe-parallel-size|model_parallel_size|model-parallel-size"},
      {"deepspeed", "zero_optimization.|train_micro_batch_size_per_gpu|train_batch_size"},
      {"llmb", "workload_info."},
      {"accelerate", "distributed_type"},
      {"torchtitan", "model.flavor|parallelism.|training.seq_len|training.local_batch_size"},
      {"megatron-lm", "language_model.|model_parallel."},
      {"nemo", "trainer.devices|model.encoder_seq_length"},
      {"llm-foundry", "max_duration|model.d_model|device_train_microbatch_size"},
      {"maxtext", "per_device_batch_size|base_config|base_emb_dim|ici_fsdp_parallelism|ici_tensor_parallelism"},
      {"megatron-bridge", "ddp.|comm_overlap.|model.num_layers|model.tensor_model_parallel_size|dist."},
      {"hugging face trainer", "per_device_train_batch_size|gradient_accumulation_steps|micro_batch_size"},
      {"hugging face model", "model_type|architectures|num_hidden_layers|n_layer"},
      {"deepspeed", "bf16.enabled|fp16.enabled"},
      {"llm-foundry", "fsdp_config."},
      {"megatron-lm", "num_layers|hidden_size|tensor_model_parallel_size"},
  }};
  static const std::vector<Mark> all = [] {
    std::vector<Mark> found;
    for (const Mark& row : rows)
      for (const Text key : split(row.key, '|')) found.push_back({row.framework, key});
    return found;
  }();
  return all;
}

}  // namespace

bool is_assignments(Text text) {
  int known = 0;
  for (Text line : split(text, '\n')) {
    line = trim(line);
    if (line.empty() || line.starts_with('#')) continue;
    const Text word = line.substr(0, line.find_first_of(" =\t("));
    if (word == "import" || word == "from") continue;
    if (word == "def" || word == "class" || !contains(line, "=")) return false;
    known += is_one_of(nanogpt_names, word) ? 1 : 0;
  }
  return known > 0;
}

std::string framework_of_document(const std::vector<ForeignSetting>& settings) {
  if (!settings.empty() && settings.front().framework == "nanogpt") return "nanogpt";
  for (const Mark& mark : marks()) {
    const bool section = mark.key.ends_with('.');
    const auto found = std::ranges::find_if(settings, [&](const ForeignSetting& setting) {
      return section ? setting.key.starts_with(mark.key) : setting.key == mark.key;
    });
    if (found != settings.end()) return std::string(mark.framework);
  }
  return "";
}

bool is_launch_script(std::string_view text) {
  const Text first = text.substr(0, text.find('\n'));
  if (first.starts_with("#!")) return contains(first, "sh");
  if (has_line(text, {"#SBATCH ", "#PBS ", "#BSUB "})) return true;
  static constexpr std::array<Text, 10> starters{"torchrun ",   "srun ",     "mpirun ", "mpiexec ", "deepspeed ",
                                                 "accelerate ", "composer ", "python ", "python3 ", "exec "};
  for (Text line : split(text, '\n')) {
    line = trim(line);
    if (line.empty() || line.starts_with('#')) continue;
    // The first command says what the text is.
    const Text word = line.substr(0, line.find_first_of(" \t"));
    constexpr Text commands = "export|set|unset|cd|source|echo|mkdir|ulimit|module|ml|conda|nvidia-smi|hostname|ls|git";
    const bool shell =
        is_one_of(commands, word) || (contains(word, "=") && word.find_first_of(":.(<[{\"'") > word.find('='));
    const bool launches = starts_with_any(line, starters);
    const bool starts = std::ranges::any_of(starters, [&](Text starter) { return contains(text, starter); });
    return (shell || launches) && starts && (contains(text, ".py") || contains(text, " -m "));
  }
  return false;
}

std::string typed_in(std::string_view text) {
  std::string typed;
  bool goes_on = false;
  for (Text line : split(text, '\n')) {
    const std::size_t at = line.find("$ ");
    const Text before = trim(line.substr(0, at));
    const bool named = contains(before, "@") && before.find_first_of("=\"'`;|&$<>") == Text::npos;
    const bool prompt = at != Text::npos && (before.empty() || named);
    if (prompt) line.remove_prefix(at + 2);
    if (goes_on && line.starts_with("> ")) line.remove_prefix(2);
    const bool taken = prompt || goes_on;
    goes_on = taken && (line.ends_with('\\') || line.ends_with("\\\r"));
    typed.append(taken ? line : "") += '\n';
  }
  return typed;
}

bool is_own_configuration(std::string_view text) {
  bool backend = false, baseline = false;
  for (const Text line : split(text, '\n')) {
    if (line.empty() || contains(" \t\r#-}]", line.substr(0, 1))) continue;
    const Text key = line.substr(0, line.find(':'));
    if (contains(key, " ") || contains(key, "`")) return false;  // prose that quotes one
    backend = backend || key == "backend";
    baseline = baseline || key == "baseline";
  }
  return backend && baseline;
}

bool JobReader::recognises(std::string_view head) {
  constexpr std::size_t most = 65536;
  const Text text = head.substr(0, head.size() > most ? head.rfind('\n', most) : most);
  if (is_launch_script(text)) return true;
  if (is_own_configuration(text)) return false;
  const Text first = text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  const auto is_mark = [](Text key) {
    return std::ranges::any_of(marks(), [&](const Mark& mark) {
      const Text known = mark.key.substr(0, mark.key.size() - (mark.key.ends_with('.') ? 1 : 0));
      const std::size_t dot = known.rfind('.');
      return key != "enabled" && key == known.substr(dot == Text::npos ? 0 : dot + 1);
    });
  };
  if (first.starts_with('{')) {
    const std::vector<Text> parts = split(text, '"');
    return std::ranges::any_of(parts, is_mark);
  }
  if (is_assignments(text)) return true;
  if (has_line(text, {"[training]", "[model]", "[parallelism]", "[job]"}))
    return contains(text, "flavor") || contains(text, "seq_len") || contains(text, "_degree");
  // YAML: every line at the margin is a key or an item, and a key is one that is known.
  bool known = false;
  for (Text line : split(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t colon = line.find(':');
    const bool is_key = colon != Text::npos && (colon + 1 == line.size() || line[colon + 1] == ' ');
    const Text key = unquoted(line.substr(0, colon));
    const bool margin = !line.empty() && std::string_view(" #-{}]").find(line[0]) == Text::npos;
    if (margin && (!is_key || key.find_first_of(" [(|/") != Text::npos)) return false;
    known = known || (is_key && is_mark(key));
  }
  return known;
}

}  // namespace harness::evidence
