#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
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

/// A YAML document as plain values, each with its place. Scalars stay text: what they mean is decided where they are
/// read. In a map every key stands once.
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

/// "nothing", "'text'", "a list", "a map": for messages.
std::string describe(const YamlNode& node);

/// Parses one YAML document. What harness has no use for is refused, so that reading costs no more than the text is
/// long: aliases and anchors, tags, several documents, nesting beyond 16, more than 5,000 values. A document that
/// cannot be read is one problem and nullopt; keys given twice are problems and the first one stays.
std::optional<YamlNode> parse_yaml(const std::string& text, int source, Problems& problems);

/// Puts each "key=value" into the tree as if it had stood in the file, with the override as its place, so that it is
/// read and checked by the same code. The key is a dotted path; a bare variable is taken under `baseline`. A map given
/// for a map changes the keys it names, except for `sweep`, which it replaces.
void apply_overrides(YamlNode& root, std::span<const std::string> overrides, Problems& problems);

/// A scalar as YAML reads it back, also within a list or a map: quoted unless it is plainly a word or a number.
std::string yaml_word(std::string_view text);
/// The canonical text of a variable's value; compound ones print as YAML.
std::string yaml_value(const std::string& canonical);
/// A node on one line; "" for nothing.
std::string flow(const YamlNode& node);
/// The text of a scalar as it is, of all else its flow().
std::string value_text(const YamlNode& node);

// ---- Files

/// Reads a text file that a person wrote: a regular file of at most 1 MiB, valid UTF-8, no control characters but line
/// ends and tabs, no tabs in indentation. Anything else is one problem of `source` and nullopt.
std::optional<std::string> read_text_file(const std::string& path, int source, Problems& problems);

/// Applies these checks to text that is already in memory. True if it is fine.
bool check_text(const std::string& text, int source, Problems& problems);

// Facts come with the program in folders of configs/, to which a user may add: hardware/, calibration/.

/// The names of a folder's files, without ".yaml", sorted.
std::vector<std::string> data_file_names(const std::filesystem::path& folder);

/// The file that `text` names in a configuration: FOLDER/TEXT.yaml beside it or among those that come with the program,
/// or a path, relative to the configuration's directory or else to the current one. Throws Error if there is none.
std::filesystem::path find_data_file(const std::string& folder, const std::string& text,
                                     const std::string& config_path);

/// The folder `configs` of the source tree or the bundle that this program is part of, or `share/harness/configs` where
/// it is installed; empty if there is none.
std::filesystem::path shipped_configs();

/// A row of configs/published/steps.csv or busbw.csv, by the names of its columns; what a source does not state is
/// empty.
using PublishedRow = std::map<std::string, std::string, std::less<>>;

/// All rows of a table. Throws Error if the file cannot be read, has more than 4 MiB or a row of another width.
std::vector<PublishedRow> read_published(const std::filesystem::path& table);

}  // namespace harness::config
