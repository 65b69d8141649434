#include "config/files.h"

#include <fmt/format.h>

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>
#include <tuple>

#include "base/text.h"

namespace harness::config {
namespace {

constexpr std::size_t max_depth = 16;
constexpr std::size_t max_nodes = 5000;
const std::string too_deep = fmt::format("found nesting deeper than {} levels", max_depth);

// Ends parsing after a reported problem that makes the rest meaningless.
struct Stop {};

// Splits a text into lines, to locate places in it.
class Lines {
 public:
  Lines(std::string_view text, int source) : source_(source), lines_(split(text, '\n')) {}

  std::string_view from(const YAML::Mark& mark) const {
    const std::string_view line = line_of(mark);
    return mark.column >= 0 && mark.column <= std::ssize(line) ? line.substr(mark.column) : std::string_view();
  }

  // yaml-cpp silently drops a directive, even if the line was meant as a key. In a map of one document, no other line
  // can begin with %.
  std::optional<Place> directive() const {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (lines_[i].starts_with('%')) return Place{source_, static_cast<int>(i) + 1, 1};
    }
    return std::nullopt;
  }

  // yaml-cpp counts bytes from 0; editors count characters from 1.
  Place place(const YAML::Mark& mark) const {
    if (mark.is_null()) return {source_, 1, 1};
    const std::string_view before = line_of(mark).substr(0, mark.column);
    const auto continuation = std::ranges::count_if(before, continues_character);
    return {source_, mark.line + 1, mark.column + 1 - static_cast<int>(continuation)};
  }

 private:
  // Returns an empty line if the mark is outside the text.
  std::string_view line_of(const YAML::Mark& mark) const {
    return mark.line >= 0 && mark.line < std::ssize(lines_) ? lines_[mark.line] : std::string_view();
  }

  int source_;
  std::vector<std::string_view> lines_;
};

// yaml-cpp accepts an unclosed quote as one that ends with the file.
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

// Builds a tree with places from yaml-cpp's nodes. The mark of a node with an anchor or a tag is that of the anchor or
// tag.
class Walk {
 public:
  // `foreign`: drops tags, and writes out aliases and merge keys. The limits keep a text of many aliases small.
  Walk(const Lines& lines, Problems& problems, bool foreign) : lines_(lines), problems_(problems), foreign_(foreign) {}

  // `path`: the keys of the enclosing maps, with a dot after each.
  YamlNode tree_of(const YAML::Node& node, const std::string& path, std::size_t depth) {
    YamlNode tree;
    tree.place = lines_.place(node.Mark());
    check(node, tree.place, depth);
    if (node.IsScalar()) {
      tree.kind = YamlNode::Kind::scalar;
      tree.scalar = node.Scalar();
    } else if (node.IsSequence()) {
      tree.kind = YamlNode::Kind::sequence;
      for (const YAML::Node& item : node) tree.children.push_back(tree_of(item, path, depth + 1));
    } else if (node.IsMap()) {
      tree.kind = YamlNode::Kind::map;
      for (const auto& entry : node) {
        if (!is_merge(entry.first)) add_entry(tree, entry.first, entry.second, path, depth + 1);
      }
      for (const auto& entry : node) {
        if (is_merge(entry.first)) merge(tree, tree_of(entry.second, path, depth + 1));
      }
    }
    return tree;
  }

  [[noreturn]] void stop(const Place& place, const std::string& message) {
    problems_.add(place, "", message);
    throw Stop();
  }

 private:
  bool is_merge(const YAML::Node& key) const { return foreign_ && key.IsScalar() && key.Scalar() == "<<"; }

  // "<<: *base", "<<: [*base, *more]": keys that a map has, or an earlier item gives it, stay as they are.
  static void merge(YamlNode& map, YamlNode base) {
    const bool is_map = base.kind == YamlNode::Kind::map;
    for (YamlNode& child : base.children) {
      if (!is_map)
        merge(map, std::move(child));
      else if (map.find(child.key) == nullptr)
        map.children.push_back(std::move(child));
    }
  }

  void check(const YAML::Node& node, const Place& place, std::size_t depth) {
    const std::string_view text = lines_.from(node.Mark());
    if (text.starts_with('&') && !foreign_)
      stop(place, "found an anchor (&name); anchors are not supported: write the value out");
    // "?" is yaml-cpp's tag of a plain scalar, "!" that of a quoted one.
    if (const std::string& tag = node.Tag(); !foreign_ && !tag.empty() && tag != "?" && tag != "!") {
      stop(place, fmt::format("found the tag {}; tags are not supported: remove it", quote(tag)));
    }
    if (depth >= max_depth) stop(place, too_deep);
    if (++nodes_ > max_nodes) stop(place, fmt::format("found more than {} values", max_nodes));
    if (node.IsScalar() && !closes_in_its_line(text)) stop(place, "found a quote that is not closed on its line");
  }

  void add_entry(YamlNode& map, const YAML::Node& key, const YAML::Node& value, const std::string& path,
                 std::size_t depth) {
    const YamlNode read_key = tree_of(key, path, depth);
    if (read_key.kind != YamlNode::Kind::scalar) {
      stop(read_key.place, fmt::format("found {} where a key should be; expected key: value", describe(read_key)));
    }
    YamlNode entry = tree_of(value, path + read_key.scalar + ".", depth);
    entry.key = read_key.scalar;
    entry.key_place = read_key.place;
    if (entry.kind == YamlNode::Kind::null) entry.place = entry.key_place;
    if (const YamlNode* first = map.find(entry.key)) {
      const std::string shown = quote(path + entry.key);
      problems_.add(entry.key_place, shown.substr(1, shown.size() - 2),
                    fmt::format("given twice, first on line {}; keep one", first->key_place.line));
      return;
    }
    map.children.push_back(std::move(entry));
  }

  const Lines& lines_;
  Problems& problems_;
  bool foreign_;
  std::size_t nodes_ = 0;
};

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

// Finds where the documents of a text begin, at most two. YAML::LoadAll() finds documents without end after "{a: 1},".
class Beginnings : public YAML::EventHandler {
 public:
  explicit Beginnings(const std::string& text) {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    for (int i = 0; i < 2 && parser.HandleNextDocument(*this);) ++i;
  }
  std::vector<YAML::Mark> marks;

 private:
  void OnDocumentStart(const YAML::Mark& mark) override { marks.push_back(mark); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {}
  void OnMapEnd() override {}
};

// Keeps a file full of mistakes from flooding the terminal.
constexpr std::size_t max_lines = 50;

}  // namespace

const YamlNode* YamlNode::find(std::string_view name) const {
  const auto it = std::find_if(children.begin(), children.end(), [&](const YamlNode& n) { return n.key == name; });
  return it == children.end() ? nullptr : &*it;
}

YamlNode* YamlNode::find(std::string_view name) {
  return const_cast<YamlNode*>(static_cast<const YamlNode*>(this)->find(name));
}

std::string describe(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::null) return "nothing";
  if (node.kind == YamlNode::Kind::scalar) return quote(node.scalar);
  if (node.kind == YamlNode::Kind::map) return "a map";
  return node.children.empty() ? "an empty list" : "a list";
}

std::optional<YamlNode> parse_yaml(const std::string& text, int source, Problems& problems, YamlOf author) {
  const std::string bare = text.starts_with(byte_order_mark) ? text.substr(byte_order_mark.size()) : text;
  const Lines lines(bare, source);
  Walk walk(lines, problems, author == YamlOf::another_program);
  try {
    if (const auto place = lines.directive())
      walk.stop(*place, "found a YAML directive (a line that begins with %); remove it, or the %");
    const std::vector<YAML::Mark> documents = Beginnings(bare).marks;
    if (documents.empty()) walk.stop({source, 1, 1}, "found nothing but blanks and comments; expected a configuration");
    YamlNode root = walk.tree_of(YAML::Load(bare), "", 0);
    if (documents.size() > 1) walk.stop(lines.place(documents[1]), "found a second document (after ---); expected one");
    return root;
  } catch (const Stop&) {
  } catch (const YAML::DeepRecursion& e) {  // far deeper than max_depth: yaml-cpp itself refuses
    problems.add(lines.place(e.mark), "", too_deep);
  } catch (const YAML::Exception& e) {
    problems.add(lines.place(e.mark), "", fmt::format("not YAML: {}", e.msg));
  }
  return std::nullopt;
}

std::string yaml_word(std::string_view text) {
  const bool plain = !text.empty() && has_only(text.substr(0, 1), "") && has_only(text, "_./:%+- ") &&
                     text.back() != ' ' && text.back() != ':' && text.find(": ") == std::string_view::npos &&
                     !same_word(text, "null");
  if (plain) return std::string(text);
  // escaped() writes unprintable characters in YAML's notation.
  return '"' + escaped(replaced(text, {{'"', "\\\""}, {'\\', "\\\\"}})) + '"';
}

std::string yaml_value(const std::string& canonical) {
  return canonical.starts_with('{') ? canonical : yaml_word(canonical);
}

std::string flow(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::null) return "";
  if (node.kind == YamlNode::Kind::scalar) return yaml_word(node.scalar);
  const bool is_map = node.kind == YamlNode::Kind::map;
  std::vector<std::string> parts;
  for (const YamlNode& child : node.children)
    parts.push_back((is_map ? yaml_word(child.key) + ": " : "") + flow(child));
  return fmt::format("{}{}{}", is_map ? '{' : '[', join(parts, ", "), is_map ? '}' : ']');
}

std::string value_text(const YamlNode& node) {
  return node.kind == YamlNode::Kind::scalar ? node.scalar : flow(node);
}

int Problems::add_file(const std::string& path) {
  sources_.push_back({escaped(path), true});
  return static_cast<int>(sources_.size()) - 1;
}

int Problems::add_override(const std::string& text) {
  const std::string shown = quote(text);  // without its quotes, but safe to print
  sources_.push_back({"--set " + shown.substr(1, shown.size() - 2), false});
  return static_cast<int>(sources_.size()) - 1;
}

bool Problems::is_override_key(const Place& place) const {
  return !sources_.at(place.source).has_lines && place.line == 1 && place.column == 1;
}

std::string Problems::where(const Place& place) const {
  const Source& source = sources_.at(place.source);
  return source.has_lines ? fmt::format("{}:{}:{}", source.label, place.line, place.column) : source.label;
}

void Problems::add(const Place& place, std::string_view key, std::string_view message, std::string_view of) {
  std::string text = where(place);
  if (!key.empty()) text += fmt::format(": {}", escaped(key));
  text += fmt::format(": {}", message);
  lines_.push_back({place, std::string(of.empty() ? key : of), std::move(text)});
}

bool Problems::concern(std::string_view key) const {
  return std::ranges::find(lines_, key, &Line::key) != lines_.end();
}

void Problems::throw_if_any() const {
  if (lines_.empty()) return;
  auto sorted = lines_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Line& a, const Line& b) {
    return std::tie(a.place.source, a.place.line, a.place.column) <
           std::tie(b.place.source, b.place.line, b.place.column);
  });
  std::vector<std::string> texts;
  for (const Line& line : sorted) {
    if (texts.size() == max_lines) {
      texts.push_back(fmt::format("… and {} more", sorted.size() - max_lines));
      break;
    }
    texts.push_back(line.text);
  }
  throw Error(join(texts, "\n"));
}

}  // namespace harness::config
