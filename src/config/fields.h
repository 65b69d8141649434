#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/choice.h"
#include "config/files.h"

namespace harness::config {

struct Experiment;
struct Faults;
struct Hardware;
struct Measure;
struct Model;

/// One key of a map, and how its value is read.
struct Field {
  using Parse = std::function<void(std::string_view text)>;
  using Read = std::function<void(const YamlNode& value, const std::string& path)>;

  Key about;  // its `name` is the key within the map
  Parse parse = {};
  std::vector<Field> inside = {};
  Read read = {};

  /// A scalar. `parse` reads its text and throws an Error that states what was found and what is allowed.
  static Field scalar(const std::string& key, const Parse& parse, const std::string& help = "",
                      const std::string& allowed = "", const std::string& fallback = "");
  /// A scalar that is one of these words.
  static Field choice(const std::string& key, const Parse& parse, const std::string& help,
                      const std::vector<std::string>& words, const std::string& fallback);
  /// A scalar that is one of `choices`, stored in `place`; both must outlive the field. The value in `place` is the
  /// default.
  template <class T, std::size_t n>
  static Field choice(const std::string& key, T& place, const std::array<Choice<T>, n>& choices,
                      const std::string& help) {
    const auto parse = [&place, &choices](std::string_view text) { place = parse_choice(text, choices); };
    return choice(key, parse, help, words_of(choices), word_of(place, choices));
  }
  /// A scalar that is true or false, likewise.
  static Field truth(const std::string& key, bool& place, const std::string& help);
  /// A list of scalars, each read by `parse`; not empty. `allowed`: "a list of …, such as [5, 8, 12]".
  static Field list(const std::string& key, const Parse& parse, const std::string& allowed);
  /// A map. `check`, if given, is called once the fields inside are read.
  static Field section(const std::string& key, const std::vector<Field>& inside, const std::string& help = "",
                       const std::string& allowed = "", const std::string& fallback = "", const Read& check = {});
  /// A map, or a list of maps. `check` is called after each.
  static Field sections(const std::string& key, const std::vector<Field>& inside, const std::string& help,
                        const Read& check);
  /// Anything else. `read` reports its own problems; without it, the value is read later.
  static Field other(const std::string& key, Takes takes, const Read& read, const std::string& help = "",
                     const std::string& allowed = "", const std::string& fallback = "");
  /// Makes read_map() report the field if it is missing.
  Field required(bool needed = true) &&;
  /// Lists these words among the allowed values; `parse` must accept them.
  Field or_words(const std::vector<std::string>& words) &&;
};

/// "prefix.key", or "key" at the top.
std::string dotted(std::string_view prefix, std::string_view key);

/// Reads a map, with fields in the order of `fields`, whatever their order in the file. Reports unknown and missing
/// keys, and values that should be scalars but are not. Returns false if `node` is not a map.
bool read_map(Problems& problems, const YamlNode& node, const std::string& prefix, std::span<const Field> fields);

/// Appends the keys of these fields and of their nested fields, by full name.
void list_keys(std::span<const Field> fields, const std::string& prefix, std::vector<Key>& keys);

/// Returns the text of a scalar; for any other node, adds a problem and returns nullopt.
std::optional<std::string> scalar_of(Problems& problems, const YamlNode& node, const std::string& key,
                                     std::string_view allowed);

/// Calls `parse` with the text and turns its Error into a problem. Returns true if there was none.
bool parse_or_report(Problems& problems, const Place& place, const std::string& key, std::string_view text,
                     const std::function<void(std::string_view)>& parse);

/// Parses a whole number from low to high. Throws Error.
std::int64_t parse_within(std::string_view text, std::int64_t low, std::int64_t high);

/// Returns the number that `parse` reads if it satisfies `holds`; otherwise throws an Error that states what is
/// allowed.
double parse_if(std::string_view text, double (*parse)(std::string_view), bool (*holds)(double),
                std::string_view allowed);
bool is_above_zero(double value);
bool is_share(double value);  // above 0 and up to 1

// Parsers for Field::scalar. They store into a place that must outlive the field, and throw Error for a disallowed
// value.

/// Stores what `parse` returns.
template <class T, class Parser>
Field::Parse parsed_into(T& place, Parser parse) {
  return [&place, parse](std::string_view text) { place = parse(text); };
}
Field::Parse whole_into(int& place, int low, int high);
Field::Parse number_into(double& place, double (*parse)(std::string_view), bool (*holds)(double), const char* allowed);
Field::Parse share_into(double& place);      // above 0 % and up to 100 %
Field::Parse line_into(std::string& place);  // not empty
Field::Parse flops_into(double& place);      // FLOP/s, above 0
Field::Parse bytes_into(double& place);      // above 0
Field::Parse seconds_into(double& place);    // above 0

// The parts of a configuration, one source file each. They add errors to `problems` and read on. Fields write into
// their arguments, which must outlive them.

/// A preset's name, a map with the five required values, or a map with `preset` and the values that differ from it.
/// `given`: the configuration's node, or nullptr.
Field model_field(const YamlNode* given, Model& model, Problems& problems);

Field faults_field(Faults& faults, Problems& problems);

Field measure_field(Measure& measure, Problems& problems);

/// Reads the hardware file that `text` names: hardware/NAME.yaml beside the configuration `config_path`, or a path,
/// relative to the configuration's directory or else to the current one.
std::optional<Hardware> read_hardware(const std::string& text, const Place& place, const std::string& config_path,
                                      Problems& problems);

/// Reads baseline, sweep, combine and ladder of a configuration: the settings of the baseline, one Change per value of
/// `sweep` that is not the baseline's, one per map of `combine`, and for every fix of `ladder` one alone and one with
/// the fixes before it.
void read_variables(const YamlNode& root, Experiment& experiment, Problems& problems);

}  // namespace harness::config
