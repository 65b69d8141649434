#include <array>

#include "base/error.h"
#include "base/text.h"
#include "config/experiment.h"
#include "config/fields.h"
#include "config/model.h"
#include "config/sections.h"

namespace harness::config {
namespace {

struct Preset {
  const char* name;
  std::int64_t layers, hidden, heads;
};

// Brown et al. 2020 (arXiv 2005.14165), table 2.1. Two rows do not multiply out there: 1.3B (24 heads of 128 in a width
// of 2048) and 13B (width 5140 with 40 heads of 128). They are taken as everyone trains them: 16 heads, 5120.
constexpr std::array<Preset, 8> presets{{{"gpt3-125m", 12, 768, 12},
                                         {"gpt3-350m", 24, 1024, 16},
                                         {"gpt3-760m", 24, 1536, 16},
                                         {"gpt3-1.3b", 24, 2048, 16},
                                         {"gpt3-2.7b", 32, 2560, 32},
                                         {"gpt3-6.7b", 32, 4096, 32},
                                         {"gpt3-13b", 40, 5120, 40},
                                         {"gpt3-175b", 96, 12288, 96}}};
constexpr std::int64_t preset_vocab = 50304, preset_sequence = 2048;
constexpr std::int64_t max_number = 100'000'000;  // of anything

Model parse_preset(std::string_view text) {
  if (auto model = model_preset(text)) return *model;
  const auto names = model_preset_names();
  fail("found {}; allowed: {{layers, hidden, heads, vocab, sequence}} or one of {}{}", quote(text), join(names, ", "),
       did_you_mean(nearest(text, names)));
}

// Sizes are multiplied in 64 bits, by bytes and by sequences too: what is beyond these is far from any machine.
constexpr double max_elements = 0x1p53;

std::string why_too_large(const Model& m) {
  const auto hidden = static_cast<double>(m.hidden), layers = static_cast<double>(m.layers);
  const auto vocab = static_cast<double>(m.vocab), sequence = static_cast<double>(m.sequence);
  const double parameters = layers * 12 * hidden * hidden + (vocab + sequence) * hidden;
  const double scores = layers * static_cast<double>(m.heads) * sequence * sequence;
  const double activations = sequence * vocab + layers * sequence * 34 * hidden + scores;
  if (parameters > max_elements) {
    return fmt::format("found a model of about {:.2g} parameters; allowed: up to {:.2g}; lower hidden, layers or vocab",
                       parameters, max_elements);
  }
  if (activations > max_elements) {
    return fmt::format(
        "found a model with about {:.2g} activations per sequence; allowed: up to {:.2g}; lower "
        "sequence, vocab, heads or hidden",
        activations, max_elements);
  }
  return "";
}

}  // namespace

std::optional<Model> model_preset(std::string_view name) {
  for (const Preset& p : presets) {
    if (name == p.name) return Model{p.name, p.layers, p.hidden, p.heads, preset_vocab, preset_sequence};
  }
  return std::nullopt;
}

std::vector<std::string> model_preset_names() {
  std::vector<std::string> names;
  names.reserve(presets.size());
  for (const Preset& p : presets) names.emplace_back(p.name);
  return names;
}

NameValues texts_of(const Model& model) {
  NameValues texts;
  each_key(model,
           [&](const ModelKey& key, const auto& value) { texts.emplace_back(key.name, fmt::format("{}", value)); });
  return texts;
}

std::string in_words(const Model& m) {
  return fmt::format("{}, hidden {}, {}, vocab {}, sequence {}", plural(m.layers, "layer"), m.hidden,
                     plural(m.heads, "head"), m.vocab, m.sequence);
}

Field model_field(const YamlNode* given, Model& model, Problems& problems) {
  const auto preset = [&](std::string_view text) { model = parse_preset(text); };
  const std::string presets_in_words = join(model_preset_names(), ", ");
  // None is required where a preset may have it.
  const bool complete = given != nullptr && given->kind == YamlNode::Kind::map && given->find("preset") == nullptr;
  std::vector<Field> inside{
      Field::scalar("preset", preset, "a preset, of which the other keys change some numbers", presets_in_words)};
  each_key(model, [&](const ModelKey& key, std::int64_t& into) {
    const auto parse = [&into](std::string_view text) { into = parse_within(text, 1, max_number); };
    inside.push_back(Field::scalar(key.name, parse, key.help, "a whole number", "the preset's").required(complete));
  });
  const auto check = [&](const YamlNode& node, const std::string& key) {
    if (model.hidden > 0 && model.heads > 0 && model.hidden % model.heads != 0) {
      // Where the later of the two was said; with a preset perhaps only one was.
      const YamlNode* at = node.find("heads") != nullptr ? node.find("heads") : node.find("hidden");
      problems.add(at->place, dotted(key, at->key),
                   fmt::format("heads {} does not divide hidden {}; allowed: divisors of it, such as {}", model.heads,
                               model.hidden, nearest_divisors(model.hidden, model.heads)));
    }
    if (const std::string why = why_too_large(model); !why.empty()) problems.add(node.place, key, why);
    if (model.name.empty() || model != *model_preset(model.name)) model.name = "custom";
  };
  Field field = Field::section("model", std::move(inside),
                               "a preset, or layers, hidden, heads, vocab and sequence; required for gpt",
                               presets_in_words, "", check);
  field.about.takes = Takes::name_or_map;
  field.parse = preset;
  return field;
}

}  // namespace harness::config
