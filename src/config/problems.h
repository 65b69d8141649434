#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace harness::config {

/// Where something stands. `source` is a number that Problems gave out: a file or one --set. Lines and columns are
/// from 1.
struct Place {
  int source = 0;
  int line = 1;
  int column = 1;
};

/// Collects what is wrong with a configuration, so that a person sees all of it at once.
class Problems {
 public:
  /// A file, printed as path:line:column.
  int add_file(const std::string& path);
  /// An override, printed as "--set key=value".
  int add_override(const std::string& text);

  /// "path:line:column", or the override as it was given.
  std::string where(const Place& place) const;
  /// Whether the place is the key of an override: what a person types there is the whole path.
  bool is_override_key(const Place& place) const;
  /// One line: "where: key: message". An empty key is left out.
  void add(const Place& place, std::string_view key, std::string_view message);
  bool empty() const { return lines_.empty(); }
  /// Whether something is wrong with this key, so that its value is not known.
  bool concern(std::string_view key) const;
  /// Throws Error with all lines, in the order of sources, lines and columns, if there are any.
  void throw_if_any() const;

 private:
  struct Source {
    std::string label;
    bool has_lines = true;
  };
  struct Line {
    Place place;
    std::string key, text;
  };
  std::vector<Source> sources_;
  std::vector<Line> lines_;
};

}  // namespace harness::config
