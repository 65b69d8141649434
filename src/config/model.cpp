#include "config/model.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "config/fields.h"

namespace harness::config {
namespace {

Model gpt3(const char* name, std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {name, layers, hidden, heads, 50304, 2048};
}

Model llama3(const char* name, std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t ffn) {
  Model m{name, layers, hidden, heads, 128256, 8192};
  m.kv_heads = 8;
  m.ffn = ffn;
  m.activation = Activation::swiglu;
  m.norm = NormKind::rms_norm;
  m.positions = Positions::rotary;
  m.rope_theta = 500000;
  m.tied_embeddings = m.biases = false;
  return m;
}

// gpt3: Brown et al. 2020 (arXiv 2005.14165), table 2.1. Two rows are inconsistent there: 1.3B (24 heads of 128 in a
// width of 2048) and 13B (width 5140 with 40 heads of 128). The values here are the common ones: 16 heads, width 5120.
// llama3: Grattafiori et al. 2024 (arXiv 2407.21783), table 3, with the sequences of its first training phase.
const std::vector<Model>& presets() {
  static const std::vector<Model> all{
      gpt3("gpt3-125m", 12, 768, 12),
      gpt3("gpt3-350m", 24, 1024, 16),
      gpt3("gpt3-760m", 24, 1536, 16),
      gpt3("gpt3-1.3b", 24, 2048, 16),
      gpt3("gpt3-2.7b", 32, 2560, 32),
      gpt3("gpt3-6.7b", 32, 4096, 32),
      gpt3("gpt3-13b", 40, 5120, 40),
      gpt3("gpt3-175b", 96, 12288, 96),
      llama3("llama3-8b", 32, 4096, 32, 14336),
      llama3("llama3-70b", 80, 8192, 64, 28672),
      llama3("llama3-405b", 126, 16384, 128, 53248),
  };
  return all;
}
constexpr std::int64_t max_number = 100'000'000;  // of any value

Model parse_preset(std::string_view text) {
  if (auto model = model_preset(text)) return *model;
  const auto names = model_preset_names();
  fail("found {}; allowed: {{layers, hidden, heads, vocab, sequence}} or one of {}{}", quote(text), join(names, ", "),
       did_you_mean(nearest(text, names)));
}

// Sizes are multiplied in 64 bits, also by bytes and sequences. Larger models are far beyond any machine.
constexpr double max_elements = 0x1p53;

std::string why_too_large(const Model& m) {
  const auto hidden = static_cast<double>(m.hidden), layers = static_cast<double>(m.layers);
  const auto vocab = static_cast<double>(m.vocab), sequence = static_cast<double>(m.sequence);
  const auto ffn = static_cast<double>(m.mlp_width()), into_mlp = static_cast<double>(m.fc1_outputs());
  const double ends = (m.tied_embeddings ? vocab : 2 * vocab) + sequence;
  const double parameters = layers * hidden * (4 * hidden + into_mlp + ffn) + ends * hidden;
  const double scores = layers * static_cast<double>(m.heads) * sequence * sequence;
  const double activations = sequence * vocab + layers * sequence * (18 * hidden + 4 * into_mlp) + scores;
  if (parameters <= max_elements && activations <= max_elements) return "";
  return fmt::format(
      "found a model of about {:.2g} parameters, with {:.2g} activations per sequence; allowed: up to {:.2g} of each; "
      "lower hidden, layers, vocab, sequence or heads",
      parameters, activations, max_elements);
}

bool is_base_of_angles(double value) {
  return value > 1 && value <= 1e12;
}

// The values of a model are whole numbers, RoPE bases, and choices: true or false, or words.

template <class Value>
constexpr bool is_choice = std::is_same_v<Value, bool> || std::is_enum_v<Value>;

template <class Value>
std::string text_of(Value value) {
  if constexpr (std::is_enum_v<Value>) {
    return word_of(value, words_for(value));
  } else {
    return fmt::format("{}", value);
  }
}

template <class Value>
void read_value(std::string_view text, Value& into) {
  if constexpr (std::is_enum_v<Value>) {
    into = parse_choice(text, words_for(into));
  } else if constexpr (std::is_same_v<Value, bool>) {
    into = parse_bool(text);
  } else if constexpr (std::is_same_v<Value, double>) {
    into = parse_if(text, parse_real, is_base_of_angles, "a number above 1 up to 1e12");
  } else {
    into = parse_within(text, 1, max_number);
  }
}

template <class Value>
Choices choices_of(Value value) {
  if constexpr (std::is_enum_v<Value>) return {words_of(words_for(value)), true};
  if constexpr (std::is_same_v<Value, bool>) return {true_false, true};
  return {};
}

// Returns "" for a value that a configuration may have, or for a 0 that other keys determine.
template <class Value>
std::string why_out_of_bounds(const ModelKey& key, Value value) {
  if constexpr (std::is_same_v<Value, double>) {
    if (value == 0 || is_base_of_angles(value)) return "";
    return fmt::format("the model has {} {}; allowed: 0 or a number above 1 up to 1e12", key.name, value);
  } else if constexpr (!is_choice<Value>) {
    const std::int64_t least = key.first_models ? 1 : 0;
    if (value >= least && value <= max_number) return "";
    return fmt::format("the model has {} {}; allowed: {} to {}", key.name, value, least, max_number);
  }
  return "";
}

void require_divides(const char* divisor, std::int64_t part, const char* number, std::int64_t whole,
                     std::vector<ModelProblem>& problems) {
  if (whole <= 0 || part <= 0 || whole % part == 0) return;
  problems.push_back({divisor, number,
                      fmt::format("{} {} does not divide {} {}; allowed: divisors of it, such as {}", divisor, part,
                                  number, whole, nearest_divisors(whole, part))});
}

}  // namespace

std::string nearest_divisors(std::int64_t number, std::int64_t wrong) {
  std::int64_t below = 1, above = number;
  const auto consider = [&](std::int64_t d) {
    if (d <= wrong) below = std::max(below, d);
    if (d >= wrong) above = std::min(above, d);
  };
  for (std::int64_t d = 1; d <= number / d; ++d) {
    if (number % d != 0) continue;
    consider(d);
    consider(number / d);
  }
  if (wrong > number || below == above) return std::to_string(below);
  return fmt::format("{} or {}", below, above);
}

std::optional<Model> model_preset(std::string_view name) {
  const auto found = std::ranges::find(presets(), name, &Model::name);
  return found == presets().end() ? std::nullopt : std::optional(*found);
}

std::vector<std::string> model_preset_names() {
  return texts_of_all(presets(), &Model::name);
}

Model Model::resolved() const {
  Model m = *this;
  m.kv_heads = key_heads();
  m.ffn = mlp_width();
  if (positions == Positions::learned) {
    m.rope_theta = 0;
  } else if (m.rope_theta == 0) {
    m.rope_theta = 10000;
  }
  return m;
}

std::vector<ModelProblem> problems_of(const Model& m) {
  std::vector<ModelProblem> problems;
  require_divides("heads", m.heads, "hidden", m.hidden, problems);
  require_divides("kv_heads", m.kv_heads, "heads", m.heads, problems);
  if (m.positions == Positions::rotary && m.heads > 0 && m.hidden % m.heads == 0 && m.head_dim() % 2 != 0) {
    problems.push_back(
        {"heads", "hidden",
         fmt::format("rotary positions turn pairs of a head's elements, but hidden {} / heads {} = {} is "
                     "odd",
                     m.hidden, m.heads, m.head_dim())});
  }
  if (std::string why = why_too_large(m); !why.empty()) problems.push_back({"", "", std::move(why)});
  return problems;
}

std::string why_impossible(const Model& model) {
  std::string why;
  each_key(model, [&](const ModelKey& key, const auto& value) {
    if (why.empty()) why = why_out_of_bounds(key, value);
  });
  if (!why.empty()) return why;
  const std::vector<ModelProblem> problems = problems_of(model);
  return problems.empty() ? "" : problems.front().text;
}

NameValues texts_of(const Model& model) {
  NameValues texts;
  const Model whole = model.resolved();
  each_key(whole, [&](const ModelKey& key, const auto& value) { texts.emplace_back(key.name, text_of(value)); });
  return texts;
}

std::string in_words(const Model& m) {
  std::string words = fmt::format("{}, hidden {}, {}, vocab {}, sequence {}", plural(m.layers, "layer"), m.hidden,
                                  plural(m.heads, "head"), m.vocab, m.sequence);
  const Model here = m.resolved();
  const Model as_gpt2 = Model{m.name, m.layers, m.hidden, m.heads, m.vocab, m.sequence}.resolved();
  if (here.kv_heads != as_gpt2.kv_heads) words += fmt::format(", {}", plural(here.kv_heads, "kv_head"));
  if (here.ffn != as_gpt2.ffn) words += fmt::format(", ffn {}", here.ffn);
  if (here.activation != as_gpt2.activation) words += fmt::format(", {}", word_of(here.activation, activations));
  if (here.norm != as_gpt2.norm) words += fmt::format(", {}", word_of(here.norm, norms));
  if (here.positions != as_gpt2.positions) words += fmt::format(", rotary (theta {})", here.rope_theta);
  if (here.tied_embeddings != as_gpt2.tied_embeddings) words += ", untied embeddings";
  if (here.biases != as_gpt2.biases) words += ", no biases";
  return words;
}

Field model_field(const YamlNode* given, Model& model, Problems& problems) {
  const auto preset = [&](std::string_view text) { model = parse_preset(text); };
  const std::string presets_in_words = join(model_preset_names(), ", ");
  // No key is required if a preset may supply it.
  const bool complete = given != nullptr && given->kind == YamlNode::Kind::map && given->find("preset") == nullptr;
  std::vector<Field> inside{Field::choice("preset", preset, "a preset, of which the other keys change some values",
                                          model_preset_names(), "")};
  each_key(model, [&](const ModelKey& key, auto& into) {
    const Choices choices = choices_of(into);
    const char* number = std::is_same_v<decltype(into), double&> ? "a number above 1" : "a whole number";
    Field field = Field::scalar(
        key.name, [&into](std::string_view text) { read_value(text, into); }, key.help,
        choices.all ? join(choices.words, ", ") : number,
        key.first_models ? key.otherwise : fmt::format("the preset's, or {}", key.otherwise));
    field.about.choices = choices;
    inside.push_back(std::move(field).required(complete && key.first_models));
  });
  const auto check = [&](const YamlNode& node, const std::string& key) {
    for (const ModelProblem& problem : problems_of(model)) {
      // Points at the first of the two keys, or else the second; the preset may have set both.
      const YamlNode* at = node.find(problem.key);
      if (at == nullptr) at = node.find(problem.or_key);
      problems.add(at == nullptr ? node.place : at->place, at == nullptr ? key : dotted(key, at->key), problem.text);
    }
    const YamlNode* theta = node.find("rope_theta");
    if (theta != nullptr && model.positions != Positions::rotary)
      problems.add(theta->place, dotted(key, theta->key), "rope_theta goes with positions: rotary");
    if (model.name.empty() || model.resolved() != model_preset(model.name)->resolved()) model.name = "custom";
  };
  Field field =
      Field::section("model", inside, "a preset, or layers, hidden, heads, vocab and sequence; required for gpt",
                     presets_in_words, "", check);
  field.about.takes = Takes::name_or_map;
  field.parse = preset;
  return field;
}

}  // namespace harness::config
