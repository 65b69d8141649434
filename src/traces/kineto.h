#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <streambuf>
#include <string>
#include <string_view>

#include "evidence/input.h"

namespace harness::traces {

/// No time beyond this, in nanoseconds, is taken from a file.
inline constexpr std::int64_t latest_ns = INT64_MAX / 4;

/// An event of a Kineto trace while it is read. Only the members that the analysis needs are kept.
struct KinetoEvent {
  /// A key of the file and the member that its value fills. `pid` and `tid` may be either, and are hashed as texts.
  struct Field {
    std::string_view key;
    bool argument = false;  // stands in the event's `args`
    std::string KinetoEvent::*text = nullptr;
    std::int64_t KinetoEvent::*whole = nullptr;
    std::int64_t KinetoEvent::*time_ns = nullptr;  // the file has microseconds
    double KinetoEvent::*real = nullptr;
  };
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

  std::string ph, cat, name, collective, type, group_description, kind, group, phase;
  std::int64_t ts_ns = -1, dur_ns = 0, device = -1, pid_number = -1, elements_in = 0, elements_out = 0, group_size = 0,
               rank = -1, operation = -1, stream = -1, correlation = 0, recomputed = 0;
  std::uint64_t pid = 0, tid = 0;
  double waiting_us = NAN, bubble_us = NAN;
  bool wrong = false;  // a time that is none

  /// nullptr: no member takes its value.
  static const Field* field_of(std::string_view key, bool argument);
  Category category() const;
  /// False: its arguments tell nothing that a member takes. Call stacks and shapes are among such.
  bool needs_arguments() const;
  std::uint64_t thread() const { return tid ^ (pid << 32); }
  /// An operation of a step of harness's own, with its arguments (report/trace.h).
  bool is_own() const { return operation >= 0 && !kind.empty(); }
  std::int64_t bytes_of_element() const;  // 0: a type that is not known

  /// `token`: the number as the file writes it, "" for a whole one.
  void take(const Field& field, std::int64_t value, double real, std::string_view token);
  void take(const Field& field, std::string& text);
  void clear();
};

/// JSON with the faults that profilers write repaired: missing values and NaN become "" and null, trailing commas go,
/// control characters in strings become spaces, lone backslashes are doubled, invalid UTF-8 becomes '?'. A string is
/// cut after 64 KiB, a number after 64 bytes.
class JsonBytes : public std::streambuf {
 public:
  explicit JsonBytes(evidence::Input& input) : input_(input), raw_(chunk, '\0') {}

  /// Goes on to the end of the object that the parser is in, or to where it cannot be JSON.
  void skip_object();
  /// After a parse error: goes on with the next line that opens an object, as if an array of trace events had just
  /// begun. False: no such line follows.
  bool restart_at_next_event();
  std::size_t repairs() const { return repairs_; }
  /// A gzip file breaks off, or is damaged, here.
  bool cut_short() const { return cut_short_; }

 private:
  static constexpr std::size_t chunk = 1u << 18, longest_string = 1u << 16, longest_number = 64;

  int_type underflow() override;
  void give() { setg(out_.data(), out_.data(), out_.data() + out_.size()); }
  bool more();
  void outside(char c);
  void inside(char c);
  void take_plain(std::size_t end);
  void take_word(std::size_t end);
  void character(char c);
  void end_character();
  void end_word();
  void put_comma();

  evidence::Input& input_;
  std::string raw_, out_, word_;
  std::size_t raw_at_ = 0, raw_size_ = 0, string_bytes_ = 0;
  std::size_t repairs_ = 0;
  std::string character_;  // the bytes so far of one that is not ASCII
  bool in_string_ = false, escape_ = false, comma_ = false, colon_ = false, cut_short_ = false;
};

}  // namespace harness::traces
