#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "config/files.h"
#include "evidence/input.h"
#include "evidence/shell.h"
#include "evidence/training_job.h"

// Recognises launch scripts and configurations, and the software that they belong to.

namespace harness::evidence {
namespace {

// Returns whether a line begins with one of these, ignoring leading blanks.
bool has_line(Text text, Text beginnings) {
  return std::ranges::any_of(split(text, '\n'), [&](Text line) { return begins_with(trim(line), beginnings); });
}

constexpr Text nanogpt_names =
    "batch_size|block_size|n_layer|n_head|n_embd|max_iters|wandb_log|gradient_accumulation_steps|eval_iters|"
    "weight_decay|init_from|lr_decay_iters";

struct Mark {
  Text framework, keys;  // separated by '|'; with a trailing dot: a section
};
// Keys that identify their framework, most reliable first. "configurations of", "manifests of": they are not read.
constexpr std::array<Mark, 21> marks{{
    {"manifests of Kubernetes", "apiVersion"},
    {"configurations of Primus", "modules.pre_trainer.|modules.post_trainer."},
    {"configurations of torchtune", "model._component_|tokenizer._component_"},
    {"configurations of NeMo AutoModel", "step_scheduler.local_batch_size|step_scheduler.global_batch_size"},
    {"configurations of Nanotron", "parallelism.pp_engine|tokens.batch_accumulation_per_replica"},
    {"configurations of OLMo", "model.mlp_hidden_size|model.mlp_ratio|model.block_type|fsdp.wrapping_strategy"},
    {"configurations of GPT-NeoX", "pipe_parallel_size|pipe-parallel-size|model_parallel_size|model-parallel-size"},
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

// Flattens configurations in JSON, TOML, YAML and plain Python assignments into lists of keys and values.

using Settings = std::vector<ForeignSetting>;

// Removes a trailing comment; '#' within quotes does not begin one.
Text without_comment(Text line) {
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote == '\0' && line[i] == '#') return trim(line.substr(0, i));
    if (quote == '\0' && (line[i] == '"' || line[i] == '\'')) {
      quote = line[i];
    } else if (line[i] == quote) {
      quote = '\0';
    }
  }
  return trim(line);
}

// "[parallelism]", "[[a.b]]". A YAML or Python list may also begin a line.
bool is_section(Text line) {
  return line.starts_with('[') && line.ends_with(']') && line.find_first_of(",'") == Text::npos;
}

// Returns false for an empty value.
bool add(Settings& to, std::string key, Text value, const std::string& origin) {
  constexpr std::size_t most = 20'000, longest = 1000;
  if (value == "null" || value == "None" || value == "~" || value.empty()) return false;
  if (to.size() >= most) fail("it has more than {} values", most);
  std::string text(value.substr(0, longest));
  if (text.find_first_not_of("0123456789_") == Text::npos) std::erase(text, '_');  // "32_000"
  if (text == "True" || text == "False") text = lower(text);
  to.push_back({std::move(key), std::move(text), origin});
  return true;
}

// Returns a key's full name within a section; "": top level.
std::string below(const std::string& section, const std::string& key) {
  return section.empty() ? key : fmt::format("{}.{}", section, key);
}

// Turns "[a, b]" into "a, b", also with quoted words.
std::string list_text(Text value) {
  if (!value.starts_with('[') || !value.ends_with(']')) return std::string(unquoted(value));
  std::vector<std::string> items;
  for (Text item : split(value.substr(1, value.size() - 2), ',')) {
    if (!trim(item).empty()) items.emplace_back(unquoted(item));
  }
  return join(items, ", ");
}

Settings toml(const std::string& name, Text text) {
  Settings found;
  std::string section, open;  // open: a list that continues on the next line
  std::string key;
  std::int64_t number = 0;
  for (Text whole : split(text, '\n')) {
    ++number;
    const Text line = without_comment(whole);
    if (line.empty()) continue;
    const std::string origin = fmt::format("{}:{}", name, number);
    if (!open.empty()) {
      open += line;
    } else if (is_section(line)) {
      section = std::string(trim(replaced(line, {{'[', ""}, {']', ""}, {'"', ""}})));
      continue;
    } else {
      const std::size_t equals = line.find('=');
      if (equals == Text::npos) continue;  // within a multi-line text
      key = std::string(unquoted(line.substr(0, equals)));
      open = std::string(trim(line.substr(equals + 1)));
    }
    if (open.starts_with('[') && !open.ends_with(']')) continue;
    add(found, below(section, key), list_text(open), origin);
    open.clear();
  }
  return found;
}

void flatten(const Json& value, const std::string& path, const std::string& origin, Settings& to) {
  if (value.is_object()) {
    for (const auto& [key, inside] : value.items()) flatten(inside, below(path, key), origin, to);
  } else if (value.is_array()) {
    std::vector<std::string> items;
    for (const Json& item : value) {
      if (item.is_primitive() && items.size() < 64)
        items.push_back(item.is_string() ? item.get<std::string>() : item.dump());
    }
    add(to, path, join(items, ", "), origin);
  } else if (value.is_string()) {
    add(to, path, value.get_ref<const std::string&>(), origin);
  } else if (value.is_number_float() && std::abs(value.get<double>()) < 1e15 &&
             value.get<double>() == std::floor(value.get<double>())) {  // 5e8
    add(to, path, std::to_string(static_cast<std::int64_t>(value.get<double>())), origin);
  } else {
    add(to, path, value.dump(), origin);
  }
}

void flatten(const config::YamlNode& node, const std::string& path, const std::string& name, Settings& to) {
  using Kind = config::YamlNode::Kind;
  const std::string origin = fmt::format("{}:{}", name, node.place.line);
  if (node.kind == Kind::map) {
    for (const config::YamlNode& child : node.children) flatten(child, below(path, child.key), name, to);
  } else if (node.kind == Kind::sequence) {
    std::vector<std::string> items;
    for (const config::YamlNode& child : node.children) {
      if (child.kind == Kind::scalar && items.size() < 64) items.push_back(child.scalar);
    }
    add(to, path, join(items, ", "), origin);
  } else {
    add(to, path, node.scalar, origin);
  }
}

// Returns the product of NeMo's "multiply:4, 512"; nothing for any other text.
std::optional<std::int64_t> product_in(Text expression) {
  constexpr Text operation = "multiply:";
  constexpr std::int64_t most = 1 << 30;
  if (!expression.starts_with(operation)) return std::nullopt;
  std::int64_t product = 1;
  for (Text factor : split(expression.substr(operation.size()), ',')) {
    const auto number = number_in<std::int64_t>(trim(factor));
    if (!number || *number < 0 || *number > most || product > most) return std::nullopt;
    product *= *number;
  }
  return product;
}

// Resolves OmegaConf's "${variables.x}" and "${.x}"; values that are computed otherwise remain unknown.
void interpolate(Settings& settings) {
  std::map<std::string, std::string, std::less<>> values;
  for (const ForeignSetting& setting : settings) values[setting.key] = setting.value;
  for (ForeignSetting& setting : settings) {
    std::string path = setting.key;
    constexpr int deepest = 8;
    for (int i = 0; i < deepest && contains(setting.value, "${"); ++i) {
      const std::size_t begin = setting.value.rfind("${"), end = setting.value.find('}', begin);
      if (end == std::string::npos) break;
      std::string name = setting.value.substr(begin + 2, end - begin - 2);
      if (const auto product = product_in(name)) {
        setting.value.replace(begin, end + 1 - begin, std::to_string(*product));
        continue;
      }
      if (name.starts_with('.')) name = path.substr(0, path.rfind('.') + 1) + name.substr(1);
      auto named = values.find(name);
      constexpr Text launcher = "training.";  // NeMo's launcher nests the file here
      if (named == values.end() && name.starts_with(launcher)) named = values.find(name.substr(launcher.size()));
      if (named == values.end()) break;
      if (begin == 0) path = name;
      setting.value.replace(begin, end + 1 - begin, named->second.substr(0, 1000));
    }
    setting.is_field = true;
    if (contains(setting.value, "${"))
      setting.why_unknown = fmt::format("{}: {} is an expression", setting.origin, setting.key);
  }
}

Settings yaml(const std::string& name, const std::string& text) {
  config::Problems problems;
  const auto tree = config::parse_yaml(text, problems.add_file(name), problems, config::YamlOf::another_program);
  if (!tree) problems.throw_if_any();
  Settings found;
  if (tree) flatten(*tree, "", name, found);
  interpolate(found);
  return found;
}

Settings assignments(const std::string& name, Text text) {
  Settings found;
  std::int64_t number = 0;
  for (Text whole : split(text, '\n')) {
    ++number;
    for (const Text line : split(without_comment(whole), ';')) {
      const std::size_t equals = line.find('=');
      if (equals == Text::npos) continue;
      const std::string key(trim(line.substr(0, equals)));
      const Text value = trim(line.substr(equals + 1));
      const auto integer = integer_expression(value);
      const bool literal = integer || as_number(value) || value == "True" || value == "False" || value == "None" ||
                           unquoted(value).size() + 2 == value.size();
      const bool plain = key.find_first_of(" .[(") == std::string::npos;
      const std::string origin = fmt::format("{}:{}", name, number);
      if (!add(found, key, integer ? std::to_string(*integer) : std::string(unquoted(value)), origin)) continue;
      if (!literal || !plain) found.back().why_unknown = fmt::format("line {}: {} is computed", number, key);
      found.back().framework = "nanogpt";
    }
  }
  return found;
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
  for (const Mark& mark : marks) {
    for (const Text key : split(mark.keys, '|')) {
      const bool found = std::ranges::any_of(settings, [&](const ForeignSetting& setting) {
        return key.ends_with('.') ? setting.key.starts_with(key) : setting.key == key;
      });
      if (found) return std::string(mark.framework);
    }
  }
  return "";
}

bool is_launch_script(std::string_view text) {
  const Text first = text.substr(0, text.find('\n'));
  if (first.starts_with("#!")) return contains(first, "sh");
  if (has_line(text, "#SBATCH |#PBS |#BSUB ")) return true;
  constexpr Text starters =
      "torchrun |srun |mpirun |mpiexec |deepspeed |accelerate |accelerate-launch |colossalai run |composer |python |"
      "python3 |exec ";
  constexpr Text front_ends =
      "swift sft |swift pt |swift rlhf |megatron sft |megatron pt |megatron rlhf |"
      "llamafactory-cli train |axolotl train ";
  for (Text line : split(text, '\n')) {
    line = trim(line);
    if (line.empty() || line.starts_with('#')) continue;
    // The first command decides.
    const Text word = line.substr(0, line.find_first_of(" \t"));
    constexpr Text commands = "export|set|unset|cd|source|echo|mkdir|ulimit|module|ml|conda|nvidia-smi|hostname|ls|git";
    const bool shell = is_one_of(commands, word) || word.ends_with("()") ||
                       (contains(word, "=") && word.find_first_of(":.(<[{\"'") > word.find('='));
    const bool launches = begins_with(line, starters) || begins_with(line, front_ends);
    const bool starts = has_any(text, starters) && has_any(text, ".py| -m | --module ");
    return (shell || launches) && (starts || has_any(text, front_ends));
  }
  return false;
}

bool is_own_configuration(std::string_view text) {
  bool backend = false, baseline = false;
  for (const Text line : split(text, '\n')) {
    if (line.empty() || contains(" \t\r#-}]", line.substr(0, 1))) continue;
    const Text key = line.substr(0, line.find(':'));
    if (contains(key, " ") || contains(key, "`")) return false;  // prose that quotes a configuration
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
  std::vector<Text> last_names;  // "flavor" of "model.flavor", "ddp" of "ddp."
  for (const Mark& mark : marks) {
    for (Text key : split(mark.keys, '|')) {
      if (key.ends_with('.')) key.remove_suffix(1);
      last_names.push_back(key.substr(key.rfind('.') + 1));
    }
  }
  const auto is_mark = [&](Text key) {
    return key != "enabled" && std::ranges::find(last_names, key) != last_names.end();
  };
  if (first.starts_with('{')) {
    const std::vector<Text> parts = split(text, '"');
    return std::ranges::any_of(parts, is_mark);
  }
  if (is_assignments(text)) return true;
  if (has_line(text, "[training]|[model]|[parallelism]|[job]"))
    return contains(text, "flavor") || contains(text, "seq_len") || contains(text, "_degree");
  // YAML: every unindented line is a key or an item, and at least one key is known.
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

Settings settings_of_document(const std::string& name, const std::string& text) {
  const Text first = Text(text).substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  Settings found;
  if (first.starts_with('{')) {
    try {
      flatten(parse_json(text), "", name, found);
    } catch (const Error&) {  // a YAML map with comments
      found = yaml(name, text);
      if (found.empty()) throw;
    }
  } else if (is_assignments(text)) {
    return assignments(name, text);
  } else if (std::ranges::any_of(split(text, '\n'), [](Text line) { return is_section(without_comment(line)); })) {
    found = toml(name, text);
  } else {
    found = yaml(name, text);
  }
  const std::string framework = framework_of_document(found);
  for (ForeignSetting& setting : found) {
    setting.framework = framework;
    constexpr Text language = "text_config.";  // the language model of a multimodal model
    if (framework == "hugging face model" && setting.key.starts_with(language)) setting.key.erase(0, language.size());
  }
  return found;
}

}  // namespace harness::evidence
