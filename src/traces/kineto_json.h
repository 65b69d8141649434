#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/input.h"

namespace harness::traces {

/// Reads JSON as a stream, with the faults that profilers write: a missing value reads as "", NaN and infinity as null;
/// commas behind the last value go; control characters in strings become spaces, lone backslashes stay, bytes that are
/// not UTF-8 become '?', as do characters by number beyond ASCII. A string is cut after 64 KiB, a number after 64
/// bytes.
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
    end,      // of the value at the top, or of the input
    damaged,  // what stands here is no JSON
  };

  explicit JsonReader(evidence::Input& input) : input_(input), raw_(chunk, '\0') {}

  Token next();
  /// Of the last key, string or number, as the file writes it. The caller may take it.
  std::string& text() { return text_; }
  /// Objects and arrays that are open.
  std::size_t depth() const { return is_object_.size(); }
  /// Goes on with the end of the innermost object, or where it cannot be JSON.
  void skip_object();
  /// After damage: goes on with the next line that opens an object, as within an array of trace events. False: no such
  /// line follows.
  bool restart_at_next_event();
  std::size_t repairs() const { return repairs_; }
  /// The gzip file breaks off, or is damaged, here.
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
  std::size_t at_ = 0, size_ = 0;  // in raw_
  std::vector<bool> is_object_;    // of each that is open; else it is an array
  Expected expected_ = Expected::value;
  std::size_t repairs_ = 0;
  bool comma_ = false, cut_short_ = false;
};

/// An event of a Kineto trace while it is read: the texts that the analysis needs, by key, as the file writes them.
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
    loading,  // of a trace that harness wrote
  };

  void clear();
  /// Where the value of a key of the event, or of its `args`, goes; nullptr: nothing is taken of it.
  std::string* place_of(std::string_view key, bool argument);
  /// "": absent. `key` is one that is taken.
  const std::string& operator[](std::string_view key) const;
  /// The whole number that the text is, or begins with.
  std::int64_t whole(std::string_view key, std::int64_t otherwise) const;
  double real(std::string_view key) const;  // NaN: it is none
  /// Microseconds as nanoseconds; nothing where the text is no time. A double would lose digits.
  std::optional<std::int64_t> ns(std::string_view key) const;

  Category category() const;
  /// False: its arguments tell nothing that is taken. Call stacks and shapes are among such.
  bool needs_arguments() const;
  std::uint64_t thread() const;
  std::int64_t stream() const;  // -1: not known
  /// An operation of a step of harness's own (report/trace.h).
  bool is_own() const { return !(*this)["operation"].empty() && !(*this)["kind"].empty(); }
  std::int64_t bytes_of_element() const;  // 0: a type that is not known

 private:
  std::array<std::string, 24> texts_;  // by key
};

}  // namespace harness::traces
