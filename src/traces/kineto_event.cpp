#include "traces/kineto_event.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace harness::traces {
namespace {

// Microseconds as the file writes them, "4887345307045.741", in nanoseconds. A double would lose digits.
bool parse_microseconds(std::string_view token, std::int64_t& ns) {
  const bool negative = token.starts_with('-');
  if (negative) token.remove_prefix(1);
  std::int64_t value = 0;
  int decimals = -1;  // behind the point
  for (const char c : token) {
    if (c == '.' && decimals < 0) {
      decimals = 0;
    } else if (c >= '0' && c <= '9') {
      if (decimals >= 3) continue;
      if (decimals >= 0) ++decimals;
      if (value > latest_ns / 10) return false;
      value = value * 10 + (c - '0');
    } else {
      return false;
    }
  }
  for (int i = std::max(decimals, 0); i < 3; ++i) {
    if (value > latest_ns / 10) return false;
    value *= 10;
  }
  ns = negative ? -value : value;
  return true;
}

}  // namespace

KinetoEvent::Field KinetoEvent::field_of(std::string_view key) {
  static constexpr std::array<std::pair<std::string_view, Field>, 8> fields{{{"ph", Field::ph},
                                                                             {"cat", Field::cat},
                                                                             {"name", Field::name},
                                                                             {"pid", Field::pid},
                                                                             {"tid", Field::tid},
                                                                             {"ts", Field::ts},
                                                                             {"dur", Field::dur},
                                                                             {"args", Field::args}}};
  for (const auto& [text, field] : fields) {
    if (key == text) return field;
  }
  return Field::none;
}

KinetoEvent::Field KinetoEvent::argument_field_of(std::string_view key) {
  static constexpr std::array<std::pair<std::string_view, Field>, 18> fields{
      {{"device", Field::device},
       {"stream", Field::stream},
       {"correlation", Field::correlation},
       {"Collective name", Field::collective},
       {"In msg nelems", Field::elements_in},
       {"Out msg nelems", Field::elements_out},
       {"dtype", Field::type},
       {"Group size", Field::group_size},
       {"Process Group Name", Field::group_name},
       {"Process Group Description", Field::group_description},
       {"Rank", Field::rank},
       {"kind", Field::kind},
       {"group", Field::group},
       {"phase", Field::phase},
       {"operation", Field::operation},
       {"recomputed", Field::recomputed},
       {"waiting_us", Field::waiting},
       {"bubble_us", Field::bubble}}};
  for (const auto& [text, field] : fields) {
    if (key == text) return field;
  }
  return Field::none;
}

KinetoEvent::Category KinetoEvent::category() const {
  static constexpr std::array<std::pair<std::string_view, Category>, 17> categories{
      {{"cpu_op", Category::operation},
       {"python_function", Category::python},
       {"kernel", Category::kernel},
       {"cuda_runtime", Category::call},
       {"cuda_driver", Category::call},
       {"gpu_memcpy", Category::copy},
       {"gpu_memset", Category::set},
       {"user_annotation", Category::annotation},
       {"user_annotation ", Category::annotation},
       {"gpu_user_annotation", Category::mark},
       {"loading", Category::loading},
       {"overhead", Category::overhead},
       {"Kernel", Category::kernel},
       {"Operator", Category::operation},
       {"Runtime", Category::call},
       {"Memcpy", Category::copy},
       {"Memset", Category::set}}};
  for (const auto& [text, category] : categories) {
    if (cat == text) return category;
  }
  return Category::other;
}

std::int64_t KinetoEvent::bytes_of_element() const {
  if (type == "Float" || type == "Int") return 4;
  if (type == "BFloat16" || type == "Half") return 2;
  if (type == "Double" || type == "Long") return 8;
  return type == "Byte" || type == "Char" || type.starts_with("Float8") ? 1 : 0;
}

void KinetoEvent::clear() {
  for (std::string* text :
       {&ph, &cat, &name, &collective, &type, &group_name, &group_description, &kind, &group, &phase})
    text->clear();
  ts_ns = device = pid_number = rank = operation = stream = -1;
  dur_ns = elements_in = elements_out = group_size = 0;
  pid = tid = correlation = 0;
  waiting_us = bubble_us = NAN;
  recomputed = wrong = false;
}

void KinetoEvent::take(Field field, std::int64_t value, double real, std::string_view token) {
  const auto bits = static_cast<std::uint64_t>(value);
  const std::int64_t count = std::clamp<std::int64_t>(value, 0, std::int64_t{1} << 50);
  if (field == Field::ts || field == Field::dur) {
    std::int64_t& ns = field == Field::ts ? ts_ns : dur_ns;
    if (token.empty() && std::abs(value) < latest_ns / 1000) {
      ns = value * 1000;
    } else if (token.empty() || !parse_microseconds(token, ns)) {  // with an exponent, or too large
      const bool fits = std::abs(real) < static_cast<double>(latest_ns) / 1000 && !token.starts_with("-");
      wrong |= !fits;
      ns = fits ? static_cast<std::int64_t>(std::llround(real * 1000)) : 0;
    }
  }
  if (field == Field::pid) pid_number = value;
  if (field == Field::pid) pid = bits;
  if (field == Field::tid) {
    tid = bits;
    if (stream < 0) stream = value & INT32_MAX;  // of GPU events the stream
  }
  if (field == Field::device) device = value;
  if (field == Field::stream) stream = value & INT32_MAX;
  if (field == Field::operation) operation = value;
  if (field == Field::recomputed) recomputed = value != 0;
  if (field == Field::waiting) waiting_us = real;
  if (field == Field::bubble) bubble_us = real;
  if (field == Field::correlation) correlation = bits;
  if (field == Field::elements_in) elements_in = count;
  if (field == Field::elements_out) elements_out = count;
  if (field == Field::group_size) group_size = count;
  if (field == Field::rank) rank = value;
}

void KinetoEvent::take(Field field, std::string& text) {
  if (field == Field::ph) ph.swap(text);
  if (field == Field::cat) cat.swap(text);
  if (field == Field::name) name.swap(text);
  if (field == Field::pid) pid = fnv1a(text);
  if (field == Field::tid) {
    tid = fnv1a(text);
    Cursor cursor{text};
    std::int32_t number = 0;
    if (cursor.literal("stream ") && cursor.integer(number) && number >= 0) stream = number;
  }
  if (field == Field::ts) wrong |= !parse_microseconds(text, ts_ns);
  if (field == Field::dur) wrong |= !parse_microseconds(text, dur_ns);
  if (field == Field::collective) collective.swap(text);
  if (field == Field::type) type.swap(text);
  if (field == Field::group_name) group_name.swap(text);
  if (field == Field::group_description) group_description.swap(text);
  if (field == Field::kind) kind.swap(text);
  if (field == Field::group) group.swap(text);
  if (field == Field::phase) phase.swap(text);
}

}  // namespace harness::traces
