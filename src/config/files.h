#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace harness::config {

/// A position in a configuration. `source` is an id from Problems: a file or one --set. Lines and columns count from 1.
struct Place {
  int source = 0;
  int line = 1;
  int column = 1;
};

/// Collects the problems of a configuration, so that all of them are reported at once.
class Problems {
 public:
  /// Dotted paths of keys, to suggest where one of them stands in another map.
  std::vector<std::string> known_keys;

  /// Registers a file, printed as path:line:column.
  int add_file(const std::string& path);
  /// Registers an override, printed as "--set key=value".
  int add_override(const std::string& text);

  /// "path:line:column", or the override as it was given.
  std::string where(const Place& place) const;
  /// Whether the place is the key of an override, which is written as a full path.
  bool is_override_key(const Place& place) const;
  /// Adds one line, "where: key: message". Omits an empty key. `of`: the key that it concerns, if that is another.
  void add(const Place& place, std::string_view key, std::string_view message, std::string_view of = "");
  bool empty() const { return lines_.empty(); }
  /// Whether this key has a problem, so that its value is unknown.
  bool concern(std::string_view key) const;
  /// Throws an Error with the lines, at most 50, sorted by source, line and column, if there are any.
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

/// A YAML document as plain values, each with its place. Scalars stay text until a field reads them. Keys of a map are
/// unique.
struct YamlNode {
  enum class Kind { null, scalar, sequence, map };
  Kind kind = Kind::null;
  Place place;      // of the value; of the key if the value is missing
  std::string key;  // when this is an entry of a map
  Place key_place;
  std::string scalar;
  std::vector<YamlNode> children;  // of a sequence or a map, in order

  const YamlNode* find(std::string_view name) const;
  YamlNode* find(std::string_view name);
};

/// "nothing", "'text'", "a list", "an empty list", "a map": for messages.
std::string describe(const YamlNode& node);

enum class YamlOf : std::uint8_t { harness, another_program };
/// Parses one YAML document. Rejects what harness does not need, so that the cost is linear in the length of the text:
/// aliases and anchors, tags, several documents, nesting beyond 16, more than 5,000 values. Adds one problem and
/// returns nullopt for an unreadable document. A duplicate key is a problem; the first value is kept. In a document of
/// another program, drops tags instead, and writes out aliases and merge keys.
std::optional<YamlNode> parse_yaml(const std::string& text, int source, Problems& problems,
                                   YamlOf author = YamlOf::harness);

/// Inserts each "key=value" into the tree as if it were in the file, with the override as its place, so that the same
/// code reads and checks it. The key is a dotted path; a bare variable goes under `baseline`. A map merges into an
/// existing map, except for `sweep`, which it replaces.
void apply_overrides(YamlNode& root, std::span<const std::string> overrides, Problems& problems);

/// Returns YAML text that reads back as this scalar, also in a list or a map: quoted unless clearly a word or a number.
std::string yaml_word(std::string_view text);
/// Returns a variable's canonical value as YAML text; compound values already are.
std::string yaml_value(const std::string& canonical);
/// Returns a node as one line of YAML; "" for null.
std::string flow(const YamlNode& node);
/// Returns the raw text of a scalar, or flow() of any other node.
std::string value_text(const YamlNode& node);

// ---- Files

/// Reads a hand-written text file: a regular file of at most 1 MiB, valid UTF-8, no control characters but line ends
/// and tabs, no tabs in indentation. For anything else, adds one problem of `source` and returns nullopt.
std::optional<std::string> read_text_file(const std::string& path, int source, Problems& problems);

/// Applies the checks of the content to text in memory. Returns true if it passes.
bool check_text(const std::string& text, int source, Problems& problems);

// Data files ship with the program in folders of configs/, to which users may add: hardware/, calibration/.

/// Returns the names of a folder's .yaml files, without ".yaml", sorted.
std::vector<std::string> data_file_names(const std::filesystem::path& folder);

/// Returns the names in a directory, then the further ones in the shipped folder of this name.
std::vector<std::string> data_file_names_beside(const std::filesystem::path& directory, const std::string& folder);

/// Returns the file that `text` names in a configuration: FOLDER/TEXT.yaml beside it or among the shipped ones, or a
/// path, relative to the configuration's directory or else to the current one. Throws Error for an unknown name; a path
/// need not exist.
std::filesystem::path find_data_file(const std::string& folder, const std::string& text,
                                     const std::string& config_path);

/// Returns a folder of `configs` in this program's source tree or bundle, or of `share/harness/configs` in its
/// installation; empty if there is none.
std::filesystem::path shipped_configs(const std::string& folder);

/// A row of a table in CSV (configs/published), by column name. A value that the source does not state is empty.
using PublishedRow = std::map<std::string, std::string, std::less<>>;

/// Reads all rows of a table. Throws Error if the file cannot be read, exceeds 4 MiB or has a row of another width.
std::vector<PublishedRow> read_published(const std::filesystem::path& table);

}  // namespace harness::config
