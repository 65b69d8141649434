#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace harness::traces {

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
