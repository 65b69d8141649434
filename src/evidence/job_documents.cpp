#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "config/yaml_tree.h"
#include "evidence/lines.h"
#include "evidence/shell.h"
#include "evidence/training_job.h"

// Configurations in JSON, TOML, YAML and plain assignments of Python, as flat lists of keys and values.

namespace harness::evidence {
namespace {

using Text = std::string_view;
using Settings = std::vector<ForeignSetting>;

// Up to a comment, which quotes hide.
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

// "[parallelism]", "[[a.b]]": a list of YAML or Python may begin a line as well.
bool is_section(Text line) {
  return line.starts_with('[') && line.ends_with(']') && line.find_first_of(",'") == Text::npos;
}

// False for a value that says nothing.
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

// The name of a key within a section; "": at the top.
std::string below(const std::string& section, const std::string& key) {
  return section.empty() ? key : fmt::format("{}.{}", section, key);
}

// "[a, b]" is "a, b", of quoted words too.
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
  std::string section, open;  // open: a list that goes on in the next line
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
      if (equals == Text::npos) continue;  // within a text of several lines
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

// Tags and anchors say how Python made the file; harness has no use for them.
std::string without_tags(Text text) {
  std::string out;
  for (Text line : split(text, '\n')) {
    std::string row(line);
    for (std::size_t at = row.find_first_of("!&*"); at != std::string::npos; at = row.find_first_of("!&*", at)) {
      const std::size_t before = at == 0 ? std::string::npos : row.find_last_not_of(' ', at - 1);
      const bool behind_key =
          before != std::string::npos && before + 1 < at && (row[before] == ':' || row[before] == '-');
      if (before == std::string::npos || behind_key) {
        row.erase(at, row.find(' ', at) - at);
      } else {
        ++at;
      }
    }
    out += row + '\n';
  }
  return out;
}

// OmegaConf's "${variables.x}" and "${.x}"; what it computes is not known.
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
      if (name.starts_with('.')) name = path.substr(0, path.rfind('.') + 1) + name.substr(1);
      auto named = values.find(name);
      constexpr Text launcher = "training.";  // where NeMo's launcher puts the file
      if (named == values.end() && name.starts_with(launcher)) named = values.find(name.substr(launcher.size()));
      if (named == values.end()) break;
      if (begin == 0) path = name;
      setting.value.replace(begin, end + 1 - begin, named->second.substr(0, 1000));
    }
    if (contains(setting.value, "${"))
      setting.why_unknown = fmt::format("{}: {} is an expression", setting.origin, setting.key);
  }
}

Settings yaml(const std::string& name, const std::string& text) {
  config::Problems problems;
  const auto tree = config::parse_yaml(without_tags(text), problems.add_file(name), problems);
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

Settings settings_of_document(const std::string& name, const std::string& text) {
  const Text first = Text(text).substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  Settings found;
  if (first.starts_with('{')) {
    try {
      flatten(parse_json(text), "", name, found);
    } catch (const Error&) {  // a map of YAML, with comments
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
    constexpr Text language = "text_config.";  // the language model among those of a multimodal model
    if (framework == "hugging face model" && setting.key.starts_with(language)) setting.key.erase(0, language.size());
  }
  return found;
}

}  // namespace harness::evidence
