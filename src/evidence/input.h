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

using Text = std::string_view;

/// Reads the bytes of a file, or of standard input ("-"), in order and unpacks gzip. Memory use does not depend on the
/// file size. A new Input on standard input continues where the previous one ended, and bytes shown by its head() are
/// returned again. Only one may exist at a time.
class Input {
 public:
  /// Throws Error if the file cannot be read or is not a regular file.
  explicit Input(const std::string& path);

  /// Returns the path, or "standard input".
  const std::string& name() const { return name_; }
  bool is_packed() const;
  /// Returns at most the first 1 MiB, which read() returns again. Call it before the first read().
  std::string_view head();
  /// Reads at most `most` bytes and returns their number, 0 at the end. Throws Error if a gzip member is truncated,
  /// after returning the last byte that could be unpacked.
  std::size_t read(char* to, std::size_t most);

  static constexpr std::size_t head_bytes = 1u << 20;

 private:
  struct Source;
  std::string name_;
  std::shared_ptr<Source> source_;
};

/// Lines of an Input as displayed: without ANSI escapes, control bytes, byte order mark, HTML's "&gt;" and docker's
/// JSON. A line feed, a carriage return (progress bars) or both together end a line. Lines are cut after 1 MiB.
class Lines {
 public:
  explicit Lines(Input& input) : input_(input) {}

  /// Returns false at the end. The text stays valid until the next call.
  bool next(std::string_view& line);
  /// Line number of the line that next() returned, from 1; only line feeds count.
  std::int64_t number() const { return number_; }

 private:
  Input& input_;
  std::string buffer_, line_;
  std::size_t at_ = 0, feed_ = 0, return_ = 0;  // buffer offsets: current, next line feed, next carriage return
  std::int64_t number_ = 0, feeds_ = 0;
  bool returned_ = false;  // the last line ended with a carriage return
};

/// Returns the whole text, for formats that are not read line by line. Throws Error if it is longer than `most`.
std::string whole_text(Input& input, std::size_t most);

/// A line without the prefixes of launchers and log collectors.
struct Line {
  std::string_view text;
  std::int64_t number = 0;  // line number in its file, from 1
  bool repeats = false;     // Ray left out lines that differ from it in numbers alone
};

/// Removes prefixes repeatedly: "[rank0]:", "[default7]:" (torchrun), "7: " (srun -l), "[1,7]<stdout>:" (mpirun
/// --tag-output), "[7] " (mpiexec -l), "[pod/launcher-0/mpi] " (kubectl logs --prefix), "(Worker pid=1, ip=10.0.0.1) "
/// (Ray), "stdout F " (containerd), "| 2024-12-04T05:27:39.074Z | " (CloudWatch, docker). Removes Ray's " [repeated 15x
/// across cluster]" from the end.
Line without_prefixes(std::string_view text, std::int64_t number);

/// Replaces prefixes within a line by blanks. A program that flushes before the end of a line gets one each time:
/// "float sum -1[0]  1626.5" (mpiexec -l), "float sum -1[1,0]<stdout>:  1626.5" (mpirun --tag-output).
std::string without_inner_prefixes(std::string_view text);

/// Returns the length of the part of a row of nccl-tests before a measurement, if NCCL's log follows on the same line:
/// 27 for "1048576 262144 float sum -1n1:20:21 [0] NCCL INFO …". 0: there is none.
std::size_t row_part_in(std::string_view text);

/// Returns the number that follows the first `label` and blanks: 6250 for "6,250". nullopt: no number follows.
std::optional<double> number_after(std::string_view text, std::string_view label);
std::optional<std::int64_t> integer_after(std::string_view text, std::string_view label);
/// Returns the number if the text holds nothing else but blanks around it.
std::optional<double> as_number(std::string_view text);

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
/// Returns whether `word` is one of the names separated by '|': "no" in "no|none".
bool is_one_of(std::string_view names, std::string_view word);
/// Maps the word "a" to "b" by "a=b|c=d". Returns the word itself if there are no pairs.
std::optional<std::string> mapped(std::string_view pairs, std::string_view word);
/// Returns whether the text contains all parts separated by '&' and none of those that begin with '!'.
bool has_all(std::string_view text, std::string_view parts);
/// Returns whether the text contains one of the parts separated by '|'.
bool has_any(std::string_view text, std::string_view parts);
/// Returns the value of a key, or `otherwise` if the key is absent.
template <class Map, class Key>
typename Map::mapped_type value_at(const Map& map, const Key& key, typename Map::mapped_type otherwise) {
  const auto found = map.find(key);
  return found == map.end() ? std::move(otherwise) : found->second;
}
/// Returns whether the text begins with one of the parts separated by '|'.
bool begins_with(std::string_view text, std::string_view parts);
/// Appends a text with these arguments.
template <class... Args>
void say(std::vector<std::string>& to, fmt::format_string<Args...> text, Args&&... args) {
  to.push_back(fmt::format(text, std::forward<Args>(args)...));
}
/// Appends a text unless it is already there.
void add_once(std::vector<std::string>& to, std::string text);
/// Appends a value and removes an earlier one of the same name.
void set_last(NameValues& values, const std::string& name, std::string value);
/// Removes the surrounding blanks and quotes.
std::string_view unquoted(std::string_view value);
/// "train.sh" for "/home/x/train.sh".
inline std::string file_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

/// Splits at blanks and tabs into at most `most` words.
std::vector<std::string_view> words_of(std::string_view text, std::size_t most = 64);

/// Returns whether an environment variable ("NAME" or "NAME=value") affects how a job communicates. Only these are
/// shown, because logs and files contain whole environments including secrets.
bool is_of_interest(std::string_view entry);

/// "once", "twice", "3 times".
std::string times(std::int64_t n);
/// "a", "a and b", "a, b and c".
std::string and_list(const std::vector<std::string>& parts);
/// and_list() for up to four parts; for more "a, b, c, d, 5 more".
std::string some_of(const std::vector<std::string>& parts);
/// Formats with three or four digits: "13.41 s", "812.3 ms", "67.66 us".
std::string seconds_text(double seconds);
/// Formats a size as a command-line option: "8GiB".
std::string size_option(std::int64_t bytes);

using Json = nlohmann::json;

inline constexpr std::size_t longest_json = 64u << 20;

/// Parses untrusted JSON: at most 64 levels and a million values. Drops members named `skipped`. Throws Error with the
/// position if the text is not JSON or exceeds these limits.
Json parse_json(const std::string& text, std::string_view skipped = "");

/// Returns a member as text or number, whatever its type; "" or `otherwise` if it is absent or has no such value.
std::string text_at(const Json& object, const char* key);
double number_at(const Json& object, const char* key, double otherwise = 0);
/// Returns -1 if the member is not a number or is negative.
std::int64_t integer_at(const Json& object, const char* key);
/// Returns the member; null if `object` is not an object or lacks it.
const Json& at(const Json& object, const char* key);

}  // namespace harness::evidence
