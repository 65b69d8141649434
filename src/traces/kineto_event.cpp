#include "traces/kineto_event.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "traces/capture.h"

namespace harness::traces {

namespace {

// Keys of the event, then keys of its `args`; from "kind" on, of what harness wrote itself.
const std::vector<std::string_view> keys = split(
    "ph|cat|name|pid|tid|ts|dur|device|stream|correlation|Collective name|In msg nelems|Out msg nelems|dtype|"
    "Group size|Process Group Description|Rank|kind|group|phase|operation|recomputed|waiting_us|bubble_us",
    '|');
constexpr std::ptrdiff_t own_keys = 7;

}  // namespace

void KinetoEvent::clear() {
  for (std::string& text : texts_) text.clear();
}

std::string* KinetoEvent::place_of(std::string_view key, bool argument) {
  const auto of_args = keys.begin() + own_keys, last = argument ? keys.end() : of_args;
  const auto found = std::find(argument ? of_args : keys.begin(), last, key);
  return found == last ? nullptr : &texts_[static_cast<std::size_t>(found - keys.begin())];
}

const std::string& KinetoEvent::operator[](std::string_view key) const {
  return texts_[static_cast<std::size_t>(std::ranges::find(keys, key) - keys.begin())];
}

KinetoEvent::Category KinetoEvent::category() const {
  static constexpr std::array<std::pair<std::string_view, Category>, 16> categories{
      {{"cpu_op", Category::operation},
       {"python_function", Category::python},
       {"kernel", Category::kernel},
       {"cuda_runtime", Category::call},
       {"cuda_driver", Category::call},
       {"gpu_memcpy", Category::copy},
       {"gpu_memset", Category::set},
       {"user_annotation", Category::annotation},
       {"gpu_user_annotation", Category::mark},
       {"loading", Category::loading},
       {"overhead", Category::overhead},
       {"Kernel", Category::kernel},  // before 2022
       {"Operator", Category::operation},
       {"Runtime", Category::call},
       {"Memcpy", Category::copy},
       {"Memset", Category::set}}};
  for (const auto& [text, category] : categories) {
    if (trim((*this)["cat"]) == text) return category;
  }
  return Category::other;
}

bool KinetoEvent::needs_arguments() const {
  switch (category()) {
    case Category::operation:
      return (*this)["name"].empty() || (*this)["name"] == "record_param_comms";
    case Category::other:
      return (*this)["cat"].empty();
    case Category::python:
    case Category::annotation:
    case Category::overhead:
      return false;
    default:
      return true;
  }
}

std::int64_t KinetoEvent::whole(std::string_view key, std::int64_t otherwise) const {
  std::int64_t value = 0;
  return Cursor{(*this)[key]}.integer(value) ? value : otherwise;
}

double KinetoEvent::real(std::string_view key) const {
  return number_in<double>((*this)[key]).value_or(NAN);
}

std::optional<std::int64_t> KinetoEvent::ns(std::string_view key) const {
  constexpr std::int64_t latest_us = latest_ns / 1000;
  const std::string_view us = (*this)[key];
  if (us.find_first_of("eE") != std::string_view::npos) {
    const double value = real(key);
    return std::abs(value) < static_cast<double>(latest_us) ? std::optional(std::llround(value * 1000)) : std::nullopt;
  }
  const std::size_t point = std::min(us.find('.'), us.size());
  std::string decimals(us.substr(std::min(point + 1, us.size())).substr(0, 3));
  decimals.resize(3, '0');
  const auto whole = number_in<std::int64_t>(us.substr(0, point));
  const auto part = number_in<std::uint32_t>(decimals);
  if (!whole || !part || *whole <= -latest_us || *whole >= latest_us) return std::nullopt;
  const std::int64_t below = *part;
  return *whole * 1000 + (us.starts_with('-') ? -below : below);
}

std::uint64_t KinetoEvent::thread() const {
  return fnv1a((*this)["tid"], fnv1a((*this)["pid"]));
}

std::int64_t KinetoEvent::stream() const {
  if (!(*this)["stream"].empty()) return whole("stream", -1);
  Cursor cursor{(*this)["tid"]};  // of GPU events the stream: 7, or before 2022 "stream 7"
  cursor.literal("stream ");
  std::int64_t number = -1;
  return cursor.integer(number) ? number : -1;
}

std::int64_t KinetoEvent::bytes_of_element() const {
  static constexpr std::pair<std::string_view, std::int64_t> types[] = {
      {"Float", 4},  {"Int", 4},    {"UInt32", 4}, {"BFloat16", 2},    {"Half", 2},         {"Short", 2},
      {"UInt16", 2}, {"Double", 8}, {"Long", 8},   {"UInt64", 8},      {"Byte", 1},         {"Char", 1},
      {"Bool", 1},   {"QInt8", 1},  {"QUInt8", 1}, {"ComplexHalf", 4}, {"ComplexFloat", 8}, {"ComplexDouble", 16}};
  for (const auto& [name, bytes] : types) {
    if ((*this)["dtype"] == name) return bytes;
  }
  return (*this)["dtype"].starts_with("Float8") ? 1 : 0;
}

}  // namespace harness::traces
