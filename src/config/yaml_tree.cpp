#include "config/yaml_tree.h"

#include <fmt/format.h>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace harness::config {
namespace {

constexpr std::size_t max_depth = 16;
constexpr std::size_t max_nodes = 5000;

// Ends the parsing once a problem has been reported that makes the rest meaningless.
struct Stop {};

// A text by its lines, for places.
class Lines {
 public:
  Lines(std::string_view text, int source) : source_(source) {
    for (std::size_t at = 0; at != std::string_view::npos;) {
      const std::size_t end = text.find('\n', at);
      lines_.push_back(text.substr(at, end == std::string_view::npos ? end : end - at));
      at = end == std::string_view::npos ? end : end + 1;
    }
  }

  std::string_view from(const YAML::Mark& mark) const {
    const std::string_view line = line_of(mark);
    return mark.column >= 0 && mark.column <= std::ssize(line) ? line.substr(mark.column) : std::string_view();
  }

  // yaml-cpp drops a directive without a word, and with it what a person meant as a key. In a map of one document, no
  // other line can begin like this.
  std::optional<Place> directive() const {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (lines_[i].starts_with('%')) return Place{source_, static_cast<int>(i) + 1, 1};
    }
    return std::nullopt;
  }

  // yaml-cpp counts bytes from 0, people and their editors characters from 1.
  Place place(const YAML::Mark& mark) const {
    if (mark.is_null()) return {source_, 1, 1};
    const std::string_view before = line_of(mark).substr(0, mark.column);
    const auto continuation = std::ranges::count_if(before, continues_character);
    return {source_, mark.line + 1, mark.column + 1 - static_cast<int>(continuation)};
  }

 private:
  // Empty where yaml-cpp names no line of the text.
  std::string_view line_of(const YAML::Mark& mark) const {
    return mark.line >= 0 && mark.line < std::ssize(lines_) ? lines_[mark.line] : std::string_view();
  }

  int source_;
  std::vector<std::string_view> lines_;
};

// yaml-cpp takes a quote that is never closed for one that ends with the file.
bool closes_in_its_line(std::string_view line) {
  if (line.empty() || (line[0] != '"' && line[0] != '\'')) return true;
  for (std::size_t at = 1; at < line.size(); ++at) {
    if (line[at] == '\\' && line[0] == '"') {
      ++at;
    } else if (line[at] == line[0]) {
      return true;  // a doubled '' closes and opens again
    }
  }
  return false;
}

// Builds the tree from yaml-cpp's events and not from its Node, which follows aliases, keeps duplicate keys silently
// and forgets where a key stood.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const Lines& lines, Problems& problems) : lines_(lines), problems_(problems) {}

  std::optional<YamlNode> root;

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) stop(place_of(mark), "found a second document (after ---); expected one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    begin(mark, YamlNode::Kind::null, "", anchor);
    end();
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    stop(place_of(mark), "found an alias (*name); aliases are not supported: write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    begin(mark, YamlNode::Kind::scalar, tag, anchor);
    if (!closes_in_its_line(lines_.from(mark))) stop(place_of(mark), "found a quote that is not closed on its line");
    open_.back().scalar = value;
    end();
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(mark, YamlNode::Kind::sequence, tag, anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(mark, YamlNode::Kind::map, tag, anchor);
  }
  void OnMapEnd() override { end(); }

 private:
  // A value under construction; a map's next key waits in it.
  struct Open : YamlNode {
    std::optional<YamlNode> next_key;
  };

  Place place_of(const YAML::Mark& mark) const { return lines_.place(mark); }

  [[noreturn]] void stop(const Place& place, const std::string& message) {
    problems_.add(place, "", message);
    throw Stop();
  }

  void begin(const YAML::Mark& mark, YamlNode::Kind kind, const std::string& tag, YAML::anchor_t anchor) {
    const Place place = place_of(mark);
    if (anchor != 0) stop(place, "found an anchor (&name); anchors are not supported: write the value out");
    // "?" is yaml-cpp's tag of a plain scalar, "!" that of a quoted one.
    if (!tag.empty() && tag != "?" && tag != "!") {
      stop(place, fmt::format("found the tag {}; tags are not supported: remove it", quote(tag)));
    }
    if (open_.size() >= max_depth) stop(place, fmt::format("found nesting deeper than {} levels", max_depth));
    if (++nodes_ > max_nodes) stop(place, fmt::format("found more than {} values", max_nodes));
    Open node;
    node.kind = kind;
    node.place = place;
    open_.push_back(std::move(node));
  }

  void end() {
    Open done = std::move(open_.back());
    open_.pop_back();
    YamlNode node = std::move(done);
    if (open_.empty()) {
      root = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.kind == YamlNode::Kind::sequence) {
      parent.children.push_back(std::move(node));
      return;
    }
    if (!parent.next_key) {
      if (node.kind != YamlNode::Kind::scalar) {
        stop(node.place, fmt::format("found {} where a key should be; expected key: value", describe(node)));
      }
      parent.next_key = std::move(node);
      return;
    }
    node.key = parent.next_key->scalar;
    node.key_place = parent.next_key->place;
    if (node.kind == YamlNode::Kind::null) node.place = node.key_place;
    parent.next_key.reset();
    if (const YamlNode* first = parent.find(node.key)) {
      problems_.add(node.key_place, path_of(node.key),
                    fmt::format("given twice, first on line {}; keep one", first->key_place.line));
      return;
    }
    parent.children.push_back(std::move(node));
  }

  // The dotted path of a key in the innermost map. The maps around it wait for it as the value of their next key.
  std::string path_of(const std::string& key) const {
    std::string path;
    for (const Open& open : open_) {
      if (open.next_key) path += open.next_key->scalar + ".";
    }
    const std::string shown = quote(path + key);
    return shown.substr(1, shown.size() - 2);
  }

  const Lines& lines_;
  Problems& problems_;
  int documents_ = 0;
  std::size_t nodes_ = 0;
  std::vector<Open> open_;
};

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

}  // namespace

const YamlNode* YamlNode::find(std::string_view name) const {
  const auto it = std::find_if(children.begin(), children.end(), [&](const YamlNode& n) { return n.key == name; });
  return it == children.end() ? nullptr : &*it;
}

YamlNode* YamlNode::find(std::string_view name) {
  return const_cast<YamlNode*>(static_cast<const YamlNode*>(this)->find(name));
}

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::scalar:
      return quote(node.scalar);
    case YamlNode::Kind::sequence:
      return "a list";
    case YamlNode::Kind::map:
      return "a map";
  }
  return "";
}

std::optional<YamlNode> parse_yaml(const std::string& text, int source, Problems& problems) {
  const std::string bare = text.starts_with(byte_order_mark) ? text.substr(byte_order_mark.size()) : text;
  std::istringstream in(bare);
  const Lines lines(bare, source);
  if (const auto place = lines.directive()) {
    problems.add(*place, "", "found a YAML directive (a line that begins with %); remove it, or the %");
    return std::nullopt;
  }
  TreeBuilder builder(lines, problems);
  try {
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Stop&) {
    return std::nullopt;
  } catch (const YAML::Exception& e) {
    problems.add(lines.place(e.mark), "", fmt::format("not YAML: {}", e.msg));
    return std::nullopt;
  }
  if (!builder.root) {
    problems.add({source, 1, 1}, "", "found nothing but blanks and comments; expected a configuration");
    return std::nullopt;
  }
  return std::move(builder.root);
}

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
  // What escaped() writes for unprintable characters is what YAML has for them.
  return '"' + escaped(replaced(text, {{'"', "\\\""}, {'\\', "\\\\"}})) + '"';
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
