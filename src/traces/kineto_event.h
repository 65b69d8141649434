#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

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
  std::uint64_t thread() const { return tid ^ (pid << 32); }
  /// An operation of a step of harness's own, with its arguments (report/trace.h).
  bool is_own() const { return operation >= 0 && !kind.empty(); }
  std::int64_t bytes_of_element() const;  // 0: a type that is not known

  /// `token`: the number as the file writes it, "" for a whole one.
  void take(const Field& field, std::int64_t value, double real, std::string_view token);
  void take(const Field& field, std::string& text);
  void clear();
};

}  // namespace harness::traces
