#include "config/fields.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "config/frameworks/framework.h"

namespace harness::config {
namespace {

// Returns the nearest key of this map, else the key of another map, as a dotted path. From the top level, that one may
// be misspelt as well.
std::string nearest_key(const std::string& key, const std::string& prefix, std::span<const std::string> allowed,
                        std::span<const std::string> known) {
  std::string near = nearest(key, allowed);
  if (!near.empty()) return near;
  const auto tails = texts_of_all(known, [](const std::string& path) { return path.substr(path.rfind('.') + 1); });
  const auto it = std::find(tails.begin(), tails.end(), prefix.empty() ? nearest(key, tails) : key);
  if (it == tails.end()) return "";
  const std::string& path = known[it - tails.begin()];
  return path.find('.') == std::string::npos ? path + " at the top level" : path;
}

// First suggests the key to write instead. Lists the allowed keys once per map, at its first unknown key; a long list
// only without a suggestion.
void report_unknown(Problems& problems, const YamlNode& child, const std::string& prefix,
                    std::span<const std::string> allowed, bool first) {
  std::string shown = quote(child.key);
  shown = shown.substr(1, shown.size() - 2);
  if (child.key == "<<")
    return problems.add(child.key_place, dotted(prefix, shown), "merge keys are not supported: write the keys out");
  const KnownElsewhere known = known_elsewhere_as(child.key);
  std::string advice = "; " + known.hint, meant = known.here.substr(known.here.rfind('.') + 1);
  if (known.hint.empty()) {
    const std::string near = nearest_key(child.key, prefix, allowed, problems.known_keys);
    const bool here = std::ranges::find(allowed, near) != allowed.end();
    advice = did_you_mean(here && problems.is_override_key(child.key_place) ? dotted(prefix, near) : near);
    if (here) meant = near;
  }
  std::string text = "unknown key" + advice;
  constexpr std::size_t short_list = 12;
  if (first && !advice.empty() && allowed.size() > short_list) {
    text += "; `harness variables` lists all";
  } else if (first) {
    text += "; allowed: " + join(allowed, ", ");
  }
  // The key that is meant has its problem here, and is not missing as well.
  problems.add(child.key_place, dotted(prefix, shown), text, meant.empty() ? "" : dotted(prefix, meant));
}

void read_list(Problems& problems, const YamlNode& value, const std::string& path, const Field& field) {
  if (value.kind != YamlNode::Kind::sequence || value.children.empty())
    return problems.add(value.place, path, fmt::format("found {}; expected {}", describe(value), field.about.allowed));
  for (std::size_t i = 0; i < value.children.size(); ++i) {
    const YamlNode& item = value.children[i];
    const std::string item_path = fmt::format("{}[{}]", path, i);
    if (const auto text = scalar_of(problems, item, item_path, ""))
      parse_or_report(problems, item.place, item_path, *text, field.parse);
  }
}

void read_field(Problems& problems, const YamlNode& value, const std::string& path, const Field& field) {
  if (field.about.takes == Takes::map_or_maps && value.kind == YamlNode::Kind::sequence) {
    for (std::size_t i = 0; i < value.children.size(); ++i) {
      const std::string item = fmt::format("{}[{}]", path, i);
      if (read_map(problems, value.children[i], item, field.inside)) field.read(value.children[i], item);
    }
    return;
  }
  if (field.about.takes == Takes::list && field.parse) return read_list(problems, value, path, field);
  const bool name = field.parse && value.kind == YamlNode::Kind::scalar;  // also if a map is allowed instead
  if (!field.inside.empty() && !name) {
    if (read_map(problems, value, path, field.inside) && field.read) field.read(value, path);
  } else if (field.parse) {
    if (const auto text = scalar_of(problems, value, path, field.about.allowed))
      parse_or_report(problems, value.place, path, *text, field.parse);
  } else if (field.read) {
    field.read(value, path);
  }
}

}  // namespace

Field Field::scalar(const std::string& key, const Parse& parse, const std::string& help, const std::string& allowed,
                    const std::string& fallback) {
  return {{key, help, allowed, fallback}, parse};
}

Field Field::choice(const std::string& key, const Parse& parse, const std::string& help,
                    const std::vector<std::string>& words, const std::string& fallback) {
  Field field = scalar(key, parse, help, join(words, ", "), fallback);
  field.about.choices = {words, true};
  return field;
}

Field Field::truth(const std::string& key, bool& place, const std::string& help) {
  return choice(key, parsed_into(place, parse_bool), help, true_false, place ? "true" : "false");
}

Field Field::list(const std::string& key, const Parse& parse, const std::string& allowed) {
  return {{key, "", allowed, "", false, Takes::list}, parse};
}

Field Field::section(const std::string& key, const std::vector<Field>& inside, const std::string& help,
                     const std::string& allowed, const std::string& fallback, const Read& check) {
  return {{key, help, allowed, fallback, false, Takes::map}, {}, inside, check};
}

Field Field::sections(const std::string& key, const std::vector<Field>& inside, const std::string& help,
                      const Read& check) {
  return {{key, help, "a map, or a list of maps", "none", false, Takes::map_or_maps}, {}, inside, check};
}

Field Field::other(const std::string& key, Takes takes, const Read& read, const std::string& help,
                   const std::string& allowed, const std::string& fallback) {
  return {{key, help, allowed, fallback, false, takes}, {}, {}, read};
}

Field Field::required(bool needed) && {
  about.required = needed;
  return std::move(*this);
}

Field Field::or_words(const std::vector<std::string>& words) && {
  about.choices.words = words;
  return std::move(*this);
}

std::string dotted(std::string_view prefix, std::string_view key) {
  return prefix.empty() ? std::string(key) : fmt::format("{}.{}", prefix, key);
}

std::optional<std::string> scalar_of(Problems& problems, const YamlNode& node, const std::string& key,
                                     std::string_view allowed) {
  if (node.kind == YamlNode::Kind::scalar) return node.scalar;
  const std::string expected = allowed.empty() ? "expected one value" : fmt::format("allowed: {}", allowed);
  problems.add(node.place, key, fmt::format("found {}; {}", describe(node), expected));
  return std::nullopt;
}

bool parse_or_report(Problems& problems, const Place& place, const std::string& key, std::string_view text,
                     const std::function<void(std::string_view)>& parse) {
  try {
    parse(text);
    return true;
  } catch (const Error& e) {
    problems.add(place, key, e.what());
    return false;
  }
}

bool read_map(Problems& problems, const YamlNode& node, const std::string& prefix, std::span<const Field> fields) {
  const auto allowed = texts_of_all(fields, [](const Field& field) { return field.about.name; });
  if (node.kind != YamlNode::Kind::map) {
    problems.add(node.place, prefix,
                 fmt::format("found {}; expected a map with the keys {}", describe(node), join(allowed, ", ")));
    return false;
  }
  bool first = true;
  for (const YamlNode& child : node.children) {
    if (std::find(allowed.begin(), allowed.end(), child.key) != allowed.end()) continue;
    report_unknown(problems, child, prefix, allowed, first);
    first = false;
  }
  for (const Field& field : fields) {
    const std::string path = dotted(prefix, field.about.name);
    if (const YamlNode* child = node.find(field.about.name)) {
      read_field(problems, *child, path, field);
    } else if (field.about.required && !problems.concern(path)) {
      problems.add(node.place, path, "missing; it has no default");
    }
  }
  return true;
}

void list_keys(std::span<const Field> fields, const std::string& prefix, std::vector<Key>& keys) {
  for (const Field& field : fields) {
    Key key = field.about;
    key.name = dotted(prefix, key.name);
    keys.push_back(key);
    list_keys(field.inside, key.name, keys);
  }
}

std::int64_t parse_within(std::string_view text, std::int64_t low, std::int64_t high) {
  const std::int64_t value = parse_integer(text);
  if (value < low || value > high) fail("found {}; allowed: {} to {}", value, low, high);
  return value;
}

Field::Parse whole_into(int& place, int low, int high) {
  return [&place, low, high](std::string_view text) { place = static_cast<int>(parse_within(text, low, high)); };
}

double parse_if(std::string_view text, double (*parse)(std::string_view), bool (*holds)(double),
                std::string_view allowed) {
  const double value = parse(text);
  if (!holds(value)) fail("found {}; allowed: {}", quote(text), allowed);
  return value;
}

bool is_above_zero(double value) {
  return value > 0;
}

bool is_share(double value) {
  return value > 0 && value <= 1;
}

Field::Parse number_into(double& place, double (*parse)(std::string_view), bool (*holds)(double), const char* allowed) {
  return [=, &place](std::string_view text) { place = parse_if(text, parse, holds, allowed); };
}

Field::Parse share_into(double& place) {
  return number_into(place, parse_share, is_share, "a share above 0 % and up to 100 %");
}

Field::Parse line_into(std::string& place) {
  return [&place](std::string_view text) {
    if (text.empty()) fail("found nothing; expected a line of text");
    place = text;
  };
}

Field::Parse flops_into(double& place) {
  return number_into(place, parse_flops, is_above_zero, "a rate above 0, such as 989 TFLOP/s");
}

Field::Parse bytes_into(double& place) {
  const auto parse = [](std::string_view text) { return static_cast<double>(parse_bytes(text)); };
  return number_into(place, parse, is_above_zero, "a size above 0, such as 80 GB");
}

Field::Parse seconds_into(double& place) {
  return number_into(place, parse_seconds, is_above_zero, "a time above 0, such as 30 s");
}

}  // namespace harness::config
