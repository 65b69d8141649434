#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/input.h"

namespace harness::traces {

/// Reads JSON as a stream and tolerates the faults that profilers write. A missing value reads as "", NaN and infinity
/// as null. Trailing commas are dropped, control characters in strings become spaces, lone backslashes stay. Invalid
/// UTF-8 bytes and \u escapes beyond ASCII become '?'. Strings are cut after 64 KiB, numbers after 64 bytes.
class JsonReader {
 public:
  enum class Token : std::uint8_t {
    begin_object,
    begin_array,
    end_object,
    end_array,
    key,
    string,
    number,
    other,    // true, false, null
    end,      // end of the top-level value or of the input
    damaged,  // the input here is not JSON
  };

  explicit JsonReader(evidence::Input& input) : input_(input), raw_(chunk, '\0') {}

  Token next();
  /// Returns the last key, string or number as the file writes it. The caller may move from it.
  std::string& text() { return text_; }
  /// Returns the number of open objects and arrays.
  std::size_t depth() const { return is_object_.size(); }
  /// Skips to the end of the innermost object, or to the first position that cannot be JSON.
  void skip_object();
  /// Recovers from damage: continues at the next line that opens an object, as within an array of trace events. Returns
  /// false if there is no such line.
  bool restart_at_next_event();
  std::size_t repairs() const { return repairs_; }
  /// True if the gzip file is truncated or damaged here.
  bool cut_short() const { return cut_short_; }

 private:
  static constexpr std::size_t chunk = 1u << 18, longest_string = 1u << 16, longest_number = 64;
  enum class Expected : std::uint8_t { value, key, separator };

  bool more();
  void skip_blanks();
  Token close(bool object);
  Token value(char c);
  Token word();
  bool string();
  void escape();
  void repair_characters();
  void keep(char c) {
    if (text_.size() < longest_string) text_ += c;
  }

  evidence::Input& input_;
  std::string raw_, text_;
  std::size_t at_ = 0, size_ = 0;  // offsets in raw_
  std::vector<bool> is_object_;    // per open level; false: an array
  Expected expected_ = Expected::value;
  std::size_t repairs_ = 0;
  bool comma_ = false, cut_short_ = false;
};

/// An event of a Kineto trace while it is read: the texts that the analysis needs, by key, unparsed.
class KinetoEvent {
 public:
  enum class Category : std::uint8_t {
    other,
    kernel,
    copy,
    set,
    call,
    annotation,
    mark,  // an annotation on the GPU
    operation,
    python,
    overhead,
    loading,  // data loading, in a trace that harness wrote
  };

  void clear() { texts_.fill(""); }
  /// Returns where to store the value of a key of the event or of its `args`; nullptr: the value is not needed.
  std::string* place_of(std::string_view key, bool argument);
  /// Returns "" if absent. `key` must be one that is stored.
  const std::string& operator[](std::string_view key) const;
  /// Returns the integer at the beginning of the text, otherwise `otherwise`.
  std::int64_t whole(std::string_view key, std::int64_t otherwise) const;
  double real(std::string_view key) const { return number_in<double>((*this)[key]).value_or(NAN); }  // NaN: no number
  /// Converts microseconds to nanoseconds; returns nothing if the text is not a time. A double would lose digits.
  std::optional<std::int64_t> ns(std::string_view key) const;

  Category category() const;
  /// Returns false if no needed value is in its arguments, for example only call stacks and shapes.
  bool needs_arguments() const;
  std::uint64_t thread() const { return fnv1a((*this)["tid"], fnv1a((*this)["pid"])); }
  std::int64_t stream() const;  // -1: unknown
  /// True for an operation in a trace that harness wrote (report/trace.h).
  bool is_own() const { return !(*this)["operation"].empty() && !(*this)["kind"].empty(); }
  std::int64_t bytes_of_element() const;  // 0: unknown type

 private:
  std::array<std::string, 25> texts_;  // in the order of the keys
};

}  // namespace harness::traces
