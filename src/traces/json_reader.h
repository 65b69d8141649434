#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
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

}  // namespace harness::traces
