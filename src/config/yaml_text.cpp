#include "config/yaml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace harness::config {

std::string yaml_word(std::string_view text) {
  constexpr std::string_view inside = "_./:%+- ";
  const auto alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const auto fine = [&](char c) { return alphanumeric(c) || inside.find(c) != std::string_view::npos; };
  const bool plain = !text.empty() && alphanumeric(text.front()) && std::ranges::all_of(text, fine) &&
                     text.back() != ' ' && text.back() != ':' && text.find(": ") == std::string_view::npos &&
                     !same_word(text, "null");
  if (plain) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string yaml_value(const std::string& canonical) {
  return canonical.starts_with('{') ? canonical : yaml_word(canonical);
}

std::string flow(const YamlNode& node) {
  std::vector<std::string> parts;
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "";
    case YamlNode::Kind::scalar:
      return yaml_word(node.scalar);
    case YamlNode::Kind::sequence:
      for (const YamlNode& child : node.children) parts.push_back(flow(child));
      return "[" + join(parts, ", ") + "]";
    case YamlNode::Kind::map:
      for (const YamlNode& child : node.children) parts.push_back(yaml_word(child.key) + ": " + flow(child));
      return "{" + join(parts, ", ") + "}";
  }
  return "";
}

std::string value_text(const YamlNode& node) {
  return node.kind == YamlNode::Kind::scalar ? node.scalar : flow(node);
}

}  // namespace harness::config
