#include "config/files.h"

#include <utility>
#include <vector>

#include "base/text.h"
#include "config/fields.h"
#include "config/registry.h"

namespace harness::config {
namespace {

// Parses lists, maps and quoted words as YAML. Anything else is literal text, so that the shell's quotes suffice; so is
// an `output` that begins with a brace ({name}).
std::optional<YamlNode> override_value(const std::string& path, const std::string& text, int source,
                                       Problems& problems) {
  constexpr std::string_view yaml_begins = "{[\"'";
  const bool template_text = path == "output" && !text.empty() && text.front() == '{';
  if (!text.empty() && yaml_begins.find(text.front()) != std::string_view::npos && !template_text) {
    return parse_yaml(text, source, problems);
  }
  YamlNode node;
  node.kind = text.empty() ? YamlNode::Kind::null : YamlNode::Kind::scalar;
  node.place = {source, 1, 1};
  node.scalar = text;
  return node;
}

void merge(YamlNode& into, YamlNode value, const std::string& path) {
  if (value.kind == YamlNode::Kind::map && into.kind == YamlNode::Kind::map && path != "sweep") {
    for (YamlNode& child : value.children) {
      const std::string child_path = dotted(path, child.key);
      if (YamlNode* same = into.find(child.key)) {
        merge(*same, std::move(child), child_path);
      } else {
        into.children.push_back(std::move(child));
      }
    }
    return;
  }
  value.key = into.key;
  value.key_place = value.place;
  into = std::move(value);
}

void apply(YamlNode& root, const std::string& text, Problems& problems) {
  const int source = problems.add_override(text);
  const Place place{source, 1, 1};
  const std::size_t equals = text.find('=');
  const std::string key(trim(text.substr(0, equals)));
  if (equals == std::string::npos || key.empty())
    return problems.add(place, "", "expected key=value, such as measure.rounds=4");
  if (!check_text(text, source, problems)) return;
  const std::vector<std::string_view> words = split(key, '.');
  std::vector<std::string> parts(words.begin(), words.end());
  const Variable* variable = find_variable(parts.front());
  if (variable != nullptr && !variable->fixed) parts.insert(parts.begin(), "baseline");
  const std::string path = join(parts, ".");
  auto value = override_value(path, std::string(trim(text.substr(equals + 1))), source, problems);
  if (!value) return;

  YamlNode* at = &root;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    // "model: gpt3-1.3b" with model.layers=2: the preset with one number changed.
    if (at->kind == YamlNode::Kind::scalar && at->key == "model") {
      YamlNode preset = *at;
      preset.key = "preset";
      at->kind = YamlNode::Kind::map;
      at->scalar.clear();
      at->children = {std::move(preset)};
    }
    if (at->kind == YamlNode::Kind::null) at->kind = YamlNode::Kind::map;
    if (at->kind != YamlNode::Kind::map)
      return problems.add(place, path, fmt::format("{} holds {}, which has no keys", at->key, describe(*at)));
    YamlNode* next = at->find(parts[i]);
    if (next == nullptr) {
      YamlNode fresh;
      fresh.place = fresh.key_place = place;
      fresh.key = parts[i];
      at->children.push_back(std::move(fresh));
      next = &at->children.back();
    }
    at = next;
  }
  merge(*at, std::move(*value), path);
}

}  // namespace

void apply_overrides(YamlNode& root, std::span<const std::string> overrides, Problems& problems) {
  for (const std::string& text : overrides) apply(root, text, problems);
}

}  // namespace harness::config
