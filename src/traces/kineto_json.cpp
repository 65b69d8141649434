#include "traces/kineto_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "traces/capture.h"

namespace harness::traces {
namespace {

using evidence::is_one_of;

bool is_of_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' || c == '.';
}
bool is_plain(char c) {
  return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
}
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Keys of the event, then keys of its `args`. Keys from "kind" on occur only in traces that harness wrote.
const std::vector<std::string_view> keys = split(
    "ph|cat|name|pid|tid|ts|dur|device|stream|correlation|Collective name|In msg nelems|Out msg nelems|dtype|"
    "Group size|Process Group Description|Process Group Ranks|Rank|kind|group|phase|operation|recomputed|waiting_us|"
    "bubble_us",
    '|');
constexpr std::ptrdiff_t own_keys = 7;

}  // namespace

// Returns whether there is a byte at at_; refills the buffer if it is used up.
bool JsonReader::more() {
  if (at_ < size_) return true;
  at_ = size_ = 0;
  if (cut_short_) return false;
  try {
    size_ = input_.read(raw_.data(), raw_.size());
  } catch (const Error&) {
    cut_short_ = true;
  }
  return size_ > 0;
}

void JsonReader::skip_blanks() {
  while (more() && is_blank(raw_[at_])) ++at_;
}

JsonReader::Token JsonReader::next() {
  text_.clear();
  skip_blanks();
  if (is_object_.empty() && expected_ == Expected::separator) return Token::end;
  if (expected_ == Expected::separator && more() && raw_[at_] == ',') {
    ++at_;
    comma_ = true;
    expected_ = is_object_.back() ? Expected::key : Expected::value;
    skip_blanks();
  }
  if (!more()) return Token::end;
  const char c = raw_[at_];
  if (c == '}' || c == ']') return close(c == '}');
  comma_ = false;
  if (expected_ == Expected::value) return value(c);
  if (expected_ != Expected::key || c != '"' || !string()) return Token::damaged;
  skip_blanks();
  if (!more() || raw_[at_] != ':') return Token::damaged;
  ++at_;
  expected_ = Expected::value;
  return Token::key;
}

JsonReader::Token JsonReader::close(bool object) {
  if (is_object_.empty() || is_object_.back() != object) return Token::damaged;
  if (object && expected_ == Expected::value) {  // "key": }
    ++repairs_;
    expected_ = Expected::separator;
    return Token::string;
  }
  if (comma_) ++repairs_;
  comma_ = false;
  ++at_;
  is_object_.pop_back();
  expected_ = Expected::separator;
  return object ? Token::end_object : Token::end_array;
}

JsonReader::Token JsonReader::value(char c) {
  if (c == '{' || c == '[') {
    ++at_;
    is_object_.push_back(c == '{');
    expected_ = c == '{' ? Expected::key : Expected::value;
    return c == '{' ? Token::begin_object : Token::begin_array;
  }
  expected_ = Expected::separator;
  if (c == ',' && !is_object_.empty() && is_object_.back()) {  // "key": ,
    ++repairs_;
    return Token::string;
  }
  if (c == '"') return string() ? Token::string : Token::damaged;
  return word();
}

JsonReader::Token JsonReader::word() {
  for (; more() && is_of_word(raw_[at_]); ++at_) {
    if (text_.size() < longest_number) text_ += raw_[at_];
  }
  std::string_view word = text_;
  if (word.starts_with('-')) word.remove_prefix(1);
  if (!word.empty() && word[0] >= '0' && word[0] <= '9') return Token::number;
  if (word == "null" || word == "true" || word == "false") return Token::other;
  const bool no_number = same_word(word, "nan") || same_word(word, "inf") || same_word(word, "infinity");
  if (no_number) ++repairs_;
  return no_number ? Token::other : Token::damaged;
}

// Reads a quoted string; returns false if it does not end.
bool JsonReader::string() {
  ++at_;
  bool ascii = true;
  while (more()) {
    const std::size_t from = at_;
    for (; at_ < size_ && is_plain(raw_[at_]); ++at_) ascii = ascii && static_cast<unsigned char>(raw_[at_]) < 0x80;
    text_.append(raw_, from, std::min(at_ - from, longest_string - text_.size()));
    if (at_ == size_) continue;
    const char c = raw_[at_++];
    if (c == '"') {
      if (!ascii) repair_characters();
      return true;
    }
    if (c == '\\') {
      escape();
    } else {
      ++repairs_;
      keep(' ');
    }
  }
  return false;
}

// Reads the rest of an escape sequence after the backslash. \u escapes beyond ASCII become '?'.
void JsonReader::escape() {
  constexpr std::string_view letters = "\"\\/bfnrt", characters = "\"\\/\b\f\n\r\t";
  const char c = more() ? raw_[at_] : '\0';
  const std::size_t letter = letters.find(c);
  if (letter != std::string_view::npos) {
    ++at_;
    keep(characters[letter]);
  } else if (c == 'u') {
    std::string digits;
    for (++at_; digits.size() < 4 && more() && is_of_word(raw_[at_]); ++at_) digits += raw_[at_];
    const std::uint32_t code = number_in<std::uint32_t>(digits, 16).value_or(0x80);
    keep(code < 0x80 ? static_cast<char>(code) : '?');
  } else {
    ++repairs_;
    keep('\\');
  }
}

void JsonReader::repair_characters() {
  std::string valid;
  for (std::size_t at = 0; at < text_.size();) {
    const std::size_t bytes = character_at(text_, at).bytes;
    if (bytes == 0) ++repairs_;
    valid += bytes == 0 ? "?" : text_.substr(at, bytes);
    at += std::max<std::size_t>(bytes, 1);
  }
  text_ = std::move(valid);
}

// Skipped bytes need no repair. A string followed by anything but a separator contained an unescaped quote.
void JsonReader::skip_object() {
  int depth = 0;
  bool string = false, escape = false, ended = false;  // in a string; after a backslash; after a string
  for (; more(); ++at_) {
    const char c = raw_[at_];
    if (string) {
      ended = c == '"' && !escape;
      string = !ended;
      escape = c == '\\' && !escape;
      continue;
    }
    if (is_blank(c)) continue;
    const bool closes = c == '}' || c == ']';
    if (ended && !closes && c != ',' && c != ':') break;
    if (closes && --depth < 0) break;
    ended = false;
    string = c == '"';
    if (c == '{' || c == '[') ++depth;
  }
  expected_ = Expected::separator;
}

bool JsonReader::restart_at_next_event() {
  is_object_ = {true, false};
  expected_ = Expected::value;
  comma_ = false;
  bool line_begins = at_ > 0 && raw_[at_ - 1] == '\n';
  for (; more(); ++at_) {
    const char c = raw_[at_];
    if (line_begins && c == '{') return true;
    line_begins = c == '\n' || (line_begins && is_blank(c));
  }
  return false;
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
  using enum Category;
  static constexpr std::array<std::pair<std::string_view, Category>, 10> categories{
      {{"cpu_op|Operator", operation},  // with a capital before 2022
       {"python_function", python},
       {"kernel|Kernel", kernel},
       {"cuda_runtime|cuda_driver|Runtime|xpu_runtime|xpu_driver|privateuse1_runtime|privateuse1_driver", call},
       {"gpu_memcpy|Memcpy", copy},
       {"gpu_memset|Memset", set},
       {"user_annotation", annotation},
       {"gpu_user_annotation", mark},
       {"loading", loading},
       {"overhead", overhead}}};
  const std::string_view text = trim((*this)["cat"]);
  const auto found = std::ranges::find_if(categories, [&](const auto& row) { return is_one_of(row.first, text); });
  return found == categories.end() ? other : found->second;
}

bool KinetoEvent::needs_arguments() const {
  const Category own = category();
  const std::string& name = (*this)["name"];
  if (own == Category::operation) return name.empty() || name == "record_param_comms";
  if (own == Category::other) return (*this)["cat"].empty();
  return own != Category::python && own != Category::annotation && own != Category::overhead;
}

std::int64_t KinetoEvent::whole(std::string_view key, std::int64_t otherwise) const {
  std::int64_t value = 0;
  return Cursor{(*this)[key]}.integer(value) ? value : otherwise;
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

std::int64_t KinetoEvent::stream() const {
  if (!(*this)["stream"].empty()) return whole("stream", -1);
  Cursor cursor{(*this)["tid"]};  // for GPU events the stream: 7, or before 2022 "stream 7"
  cursor.literal("stream ");
  std::int64_t number = -1;
  return cursor.integer(number) ? number : -1;
}

std::int64_t KinetoEvent::bytes_of_element() const {
  const std::string& type = (*this)["dtype"];
  if (type.starts_with("Float8") || is_one_of("Byte|Char|Bool|QInt8|QUInt8", type)) return 1;
  if (is_one_of("BFloat16|Half|Short|UInt16", type)) return 2;
  if (is_one_of("Float|Int|UInt32|ComplexHalf", type)) return 4;
  if (is_one_of("Double|Long|UInt64|ComplexFloat", type)) return 8;
  return type == "ComplexDouble" ? 16 : 0;
}

}  // namespace harness::traces
