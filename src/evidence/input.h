#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace harness::evidence {

/// The bytes of a file, or of the standard input ("-"), in order. gzip is unpacked on the way. Memory does not grow
/// with the file. An Input of the standard input goes on where the one before it ended: what head() showed of it comes
/// once more. There may be one at a time.
class Input {
 public:
  /// Throws Error for a file that cannot be read and for one that is no regular file.
  explicit Input(const std::string& path);

  /// The path; of the standard input "standard input".
  const std::string& name() const { return name_; }
  bool is_packed() const;
  /// The first bytes, at most 1 MiB of them. read() returns them once more. To be called before the first read().
  std::string_view head();
  /// The next bytes, at most `most`; 0 at the end. Throws Error where the file breaks off within a gzip member, behind
  /// the last byte that could be unpacked.
  std::size_t read(char* to, std::size_t most);

  static constexpr std::size_t head_bytes = 1u << 20;

 private:
  struct Source;
  std::string name_;
  std::shared_ptr<Source> source_;
};

/// Lines of an Input as a person sees them: without ANSI escapes, control bytes and byte order mark. Line feeds,
/// carriage returns (progress bars) and both together end a line. A line is cut after its first MiB.
class Lines {
 public:
  explicit Lines(Input& input) : input_(input) {}

  /// False at the end. The text is valid until the next call.
  bool next(std::string_view& line);
  /// Line feeds before the line that next() returned, and one.
  std::int64_t number() const { return number_; }

 private:
  Input& input_;
  std::string buffer_, line_;
  std::size_t at_ = 0, feed_ = 0, return_ = 0;  // places in the buffer: here, the next line feed, carriage return
  std::int64_t number_ = 0, feeds_ = 0;
  bool returned_ = false;  // the last line ended with a carriage return
};

/// The whole text, for formats that are not read line by line. Throws Error if it is longer than `most`.
std::string whole_text(Input& input, std::size_t most);

/// A line without what launchers and log collectors put before it.
struct Line {
  std::string_view text;
  std::int64_t number = 0;  // in its file, from 1
};

/// Takes off, repeatedly: "[rank0]:", "[default7]:" (torchrun), "7: " (srun -l), "[1,7]<stdout>:" (mpirun
/// --tag-output), "(Worker pid=1, ip=10.0.0.1) " (Ray), "| 2024-12-04T05:27:39.074Z | "
/// (CloudWatch, docker).
Line without_prefixes(std::string_view text, std::int64_t number);

/// The number that stands behind the first `label` and blanks: "6,250" is 6250. nullopt: none stands there.
std::optional<double> number_after(std::string_view text, std::string_view label);
std::optional<std::int64_t> integer_after(std::string_view text, std::string_view label);
/// The text is one number and nothing else, but for blanks around it.
std::optional<double> as_number(std::string_view text);

/// Whether the part stands in the text.
bool contains(std::string_view text, std::string_view part);
/// Whether `word` is one of the names between bars: "no" of "no|none".
bool is_one_of(std::string_view names, std::string_view word);
/// "b" for the word "a" of "a=b|c=d"; the word itself where there are no pairs.
std::optional<std::string> mapped(std::string_view pairs, std::string_view word);
/// Whether all parts between '&' stand in a text, and those behind '!' do not.
bool has_all(std::string_view text, std::string_view parts);
/// Whether one of the parts between bars stands in a text.
bool has_any(std::string_view text, std::string_view parts);
/// The value of a key; `otherwise` where it is not there.
template <class Map, class Key>
typename Map::mapped_type value_at(const Map& map, const Key& key, typename Map::mapped_type otherwise) {
  const auto found = map.find(key);
  return found == map.end() ? std::move(otherwise) : found->second;
}
/// Adds a text that is not there yet.
void add_once(std::vector<std::string>& to, std::string text);
/// Puts a value at the end, instead of an earlier one of this name.
void set_last(NameValues& values, const std::string& name, std::string value);
/// Without blanks and the quotes around it.
std::string_view unquoted(std::string_view value);
/// "train.sh" of "/home/x/train.sh".
std::string file_name(std::string_view path);

/// The parts between blanks and tabs, at most `most`.
std::vector<std::string_view> words_of(std::string_view text, std::size_t most = 64);

/// Whether an environment variable ("NAME" or "NAME=value") says how a job communicates. Only these are shown: logs and
/// files hold whole environments, and with them secrets.
bool is_of_interest(std::string_view entry);

/// "once", "twice", "3 times".
std::string times(std::int64_t n);
/// "a", "a and b", "a, b and c".
std::string and_list(const std::vector<std::string>& parts);
/// and_list() of up to four; of more "a, b, c, d, 5 more".
std::string some_of(const std::vector<std::string>& parts);
/// Three or four digits: "13.41 s", "812.3 ms", "67.66 us".
std::string seconds_text(double seconds);
/// A size for an option of a command: "8GiB".
std::string size_option(std::int64_t bytes);

using Json = nlohmann::json;

inline constexpr std::size_t longest_json = 64u << 20;

/// Parses JSON of anyone: at most 64 levels deep and a million values, and without the members of that `skipped` name.
/// Throws Error with the place for a text that is no JSON or goes beyond that.
Json parse_json(const std::string& text, std::string_view skipped = "");

/// A member as text or number, whatever its type; "" and `otherwise` for one that is not there or no such value.
std::string text_at(const Json& object, const char* key);
double number_at(const Json& object, const char* key, double otherwise = 0);
/// -1 where there is no number, or one below zero.
std::int64_t integer_at(const Json& object, const char* key);
/// The member; null if `object` is no object or has none.
const Json& at(const Json& object, const char* key);

}  // namespace harness::evidence
