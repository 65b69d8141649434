#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "evidence/input.h"

namespace harness::traces {

/// JSON with the faults that profilers write repaired: missing values and NaN become "" and null, trailing commas go,
/// control characters in strings become spaces, lone backslashes are doubled, invalid UTF-8 becomes '?'. A string is
/// cut after 64 KiB, a number after 64 bytes.
class JsonBytes {
 public:
  explicit JsonBytes(evidence::Input& input) : input_(input), raw_(chunk, '\0') {}

  /// The next byte, or -1 at the end.
  int peek() {
    if (at_ == out_.size() && !refill()) return -1;
    return static_cast<unsigned char>(out_[at_]);
  }
  void skip() { ++at_; }
  /// After a parse error: goes on with the next line that opens an object, as if an array of trace events had just
  /// begun. False: no such line follows.
  bool restart_at_next_event();
  std::int64_t repairs() const { return repairs_; }
  /// A gzip file breaks off, or is damaged, here.
  bool cut_short() const { return cut_short_; }

 private:
  static constexpr std::size_t chunk = 1u << 18, longest_string = 1u << 16, longest_number = 64;

  bool refill();
  bool more();
  void outside(char c);
  void inside(char c);
  void take_plain(std::size_t end);
  void character(char c);
  void end_character();
  void end_word();
  void put_comma();

  evidence::Input& input_;
  std::string raw_, out_, word_;
  std::size_t raw_at_ = 0, raw_size_ = 0, at_ = 0, string_bytes_ = 0;
  std::int64_t repairs_ = 0;
  int expected_ = 0;       // continuation bytes of the current UTF-8 character
  std::string character_;  // its bytes so far
  bool in_string_ = false, escape_ = false, comma_ = false, colon_ = false, cut_short_ = false;
};

/// An input iterator over JsonBytes for a parser. All that are not `end` share the place.
class JsonIterator {
 public:
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;
  using iterator_category = std::input_iterator_tag;

  explicit JsonIterator(JsonBytes* bytes = nullptr) : bytes_(bytes) {}
  char operator*() const { return static_cast<char>(bytes_->peek()); }
  JsonIterator& operator++() {
    bytes_->skip();
    return *this;
  }
  bool operator==(const JsonIterator& other) const { return ended() == other.ended(); }
  bool operator!=(const JsonIterator& other) const { return !(*this == other); }

 private:
  bool ended() const { return bytes_ == nullptr || bytes_->peek() < 0; }

  JsonBytes* bytes_;
};

}  // namespace harness::traces
