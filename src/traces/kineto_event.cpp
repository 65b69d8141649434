#include "traces/kineto.h"

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

using Event = KinetoEvent;
constexpr std::array<Event::Field, 25> fields{{
    {.key = "ph", .text = &Event::ph},
    {.key = "cat", .text = &Event::cat},
    {.key = "name", .text = &Event::name},
    {.key = "pid"},
    {.key = "tid"},
    {.key = "ts", .time_ns = &Event::ts_ns},
    {.key = "dur", .time_ns = &Event::dur_ns},
    {.key = "args"},
    {.key = "device", .argument = true, .whole = &Event::device},
    {.key = "stream", .argument = true, .whole = &Event::stream},
    {.key = "correlation", .argument = true, .whole = &Event::correlation},
    {.key = "Collective name", .argument = true, .text = &Event::collective},
    {.key = "In msg nelems", .argument = true, .whole = &Event::elements_in},
    {.key = "Out msg nelems", .argument = true, .whole = &Event::elements_out},
    {.key = "dtype", .argument = true, .text = &Event::type},
    {.key = "Group size", .argument = true, .whole = &Event::group_size},
    {.key = "Process Group Description", .argument = true, .text = &Event::group_description},
    {.key = "Rank", .argument = true, .whole = &Event::rank},
    {.key = "kind", .argument = true, .text = &Event::kind},
    {.key = "group", .argument = true, .text = &Event::group},
    {.key = "phase", .argument = true, .text = &Event::phase},
    {.key = "operation", .argument = true, .whole = &Event::operation},
    {.key = "recomputed", .argument = true, .whole = &Event::recomputed},
    {.key = "waiting_us", .argument = true, .real = &Event::waiting_us},
    {.key = "bubble_us", .argument = true, .real = &Event::bubble_us},
}};

}  // namespace

const KinetoEvent::Field* KinetoEvent::field_of(std::string_view key, bool argument) {
  const auto found =
      std::ranges::find_if(fields, [&](const Field& field) { return field.argument == argument && field.key == key; });
  return found == fields.end() ? nullptr : &*found;
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

bool KinetoEvent::needs_arguments() const {
  const Category known = category();
  if (known == Category::operation) return name.empty() || name == "record_param_comms";
  const bool none = known == Category::python || known == Category::annotation || known == Category::overhead;
  return known == Category::other ? cat.empty() : !none;
}

std::int64_t KinetoEvent::bytes_of_element() const {
  struct Type {
    std::string_view name;
    std::int64_t bytes;
  };
  static constexpr Type types[] = {{"Float", 4},       {"Int", 4},          {"UInt32", 4},        {"BFloat16", 2},
                                   {"Half", 2},        {"Short", 2},        {"UInt16", 2},        {"Double", 8},
                                   {"Long", 8},        {"UInt64", 8},       {"Byte", 1},          {"Char", 1},
                                   {"Bool", 1},        {"QInt8", 1},        {"QUInt8", 1},        {"QInt32", 4},
                                   {"ComplexHalf", 4}, {"ComplexFloat", 8}, {"ComplexDouble", 16}};
  for (const auto& [name, bytes] : types) {
    if (type == name) return bytes;
  }
  return type.starts_with("Float8") ? 1 : 0;
}

void KinetoEvent::clear() {
  for (const Field& field : fields) {
    if (field.text != nullptr) (this->*field.text).clear();
  }
  ts_ns = device = pid_number = rank = operation = stream = -1;
  dur_ns = elements_in = elements_out = group_size = correlation = recomputed = 0;
  pid = tid = 0;
  waiting_us = bubble_us = NAN;
  wrong = false;
}

void KinetoEvent::take(const Field& field, std::int64_t value, double real, std::string_view token) {
  if (field.whole != nullptr) this->*field.whole = value;
  if (field.real != nullptr) this->*field.real = real;
  if (field.key == "pid") {
    pid_number = value;
    pid = static_cast<std::uint64_t>(value);
  } else if (field.key == "tid") {
    tid = static_cast<std::uint64_t>(value);
    if (stream < 0) stream = value & INT32_MAX;  // of GPU events the stream
  }
  if (field.time_ns == nullptr) return;
  std::int64_t& ns = this->*field.time_ns;
  if (token.empty() && std::abs(value) < latest_ns / 1000) {
    ns = value * 1000;
  } else if (token.empty() || !parse_microseconds(token, ns)) {  // with an exponent, or too large
    const bool fits = std::abs(real) < static_cast<double>(latest_ns) / 1000 && !token.starts_with("-");
    wrong |= !fits;
    ns = fits ? static_cast<std::int64_t>(std::llround(real * 1000)) : 0;
  }
}

void KinetoEvent::take(const Field& field, std::string& text) {
  if (field.key == "pid") pid = fnv1a(text);
  if (field.key == "tid") {
    tid = fnv1a(text);
    Cursor cursor{text};
    std::int32_t number = 0;
    if (cursor.literal("stream ") && cursor.integer(number) && number >= 0) stream = number;
  }
  if (field.time_ns != nullptr) wrong |= !parse_microseconds(text, this->*field.time_ns);
  if (field.text != nullptr) (this->*field.text).swap(text);
}

}  // namespace harness::traces
