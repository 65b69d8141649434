#include "traces/kineto.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace harness::traces {
namespace {

// Tables: these are asked of every byte of a file.
using CharacterSet = std::array<bool, 256>;
constexpr CharacterSet set_of(bool (*holds)(unsigned char)) {
  CharacterSet set{};
  for (std::size_t byte = 0; byte < set.size(); ++byte) set[byte] = holds(static_cast<unsigned char>(byte));
  return set;
}
constexpr CharacterSet in_word = set_of([](unsigned char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' || c == '.';
});
constexpr CharacterSet plain = set_of([](unsigned char c) { return c >= 0x20 && c < 0x80 && c != '"' && c != '\\'; });
constexpr CharacterSet blank = set_of([](unsigned char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; });
bool is(const CharacterSet& set, char c) {
  return set[static_cast<unsigned char>(c)];
}

}  // namespace

bool JsonBytes::more() {
  if (raw_at_ < raw_size_) return true;
  raw_at_ = raw_size_ = 0;
  if (cut_short_) return false;
  try {
    raw_size_ = input_.read(raw_.data(), raw_.size());
  } catch (const Error&) {
    cut_short_ = true;
  }
  return raw_size_ > 0;
}

// A line at a time, so that after an error the place in the file is known to a line.
JsonBytes::int_type JsonBytes::underflow() {
  out_.clear();
  while (out_.empty() && more()) {
    constexpr std::size_t longest_line = 1u << 14;
    const std::size_t end = std::min(raw_size_, raw_at_ + longest_line);
    while (raw_at_ < end) {
      if (in_string_ && !escape_ && character_.empty() && string_bytes_ < longest_string) take_plain(end);
      if (!in_string_) take_word(end);
      if (raw_at_ == end) break;
      const char c = raw_[raw_at_++];
      in_string_ ? inside(c) : outside(c);
      if (c == '\n') break;
    }
  }
  if (out_.empty() && !word_.empty()) end_word();
  give();
  return out_.empty() ? traits_type::eof() : traits_type::to_int_type(out_.front());
}

// The characters of a string that need no look of their own, up to `end` of the raw bytes.
void JsonBytes::take_plain(std::size_t end) {
  const std::size_t from = raw_at_;
  while (raw_at_ < end && is(plain, raw_[raw_at_])) ++raw_at_;
  out_.append(raw_, from, raw_at_ - from);
  string_bytes_ += raw_at_ - from;
}

// A number or a word outside of strings, up to `end` of the raw bytes.
void JsonBytes::take_word(std::size_t end) {
  const std::size_t from = raw_at_;
  while (raw_at_ < end && is(in_word, raw_[raw_at_])) ++raw_at_;
  if (raw_at_ == from) return;
  put_comma();
  colon_ = false;
  word_.append(raw_, from, std::min(raw_at_ - from, longest_number - word_.size()));
}

// Bytes that nobody reads need no repair: what is not in the buffer yet is skipped as it stands in the file.
void JsonBytes::skip_object() {
  int depth = 0;
  bool string = false, escape = false, ended = false;  // in a string; behind a backslash; behind a string
  const auto goes_on = [&](char c) {
    if (string) {
      ended = c == '"' && !escape;
      string = !ended;
      escape = c == '\\' && !escape;
      return true;
    }
    if (is(blank, c)) return true;
    if (ended && c != ',' && c != ':' && c != '}' && c != ']') return false;
    ended = false;
    string = c == '"';
    if (c == '{' || c == '[') ++depth;
    return (c != '}' && c != ']') || --depth >= 0;
  };
  for (; gptr() < egptr(); gbump(1)) {
    if (!goes_on(*gptr())) return;
  }
  escape = escape_;
  ended = ended && !comma_;
  in_string_ = escape_ = comma_ = colon_ = false;
  character_.clear();
  word_.clear();
  while (more() && goes_on(raw_[raw_at_])) ++raw_at_;
}

void JsonBytes::put_comma() {
  if (comma_) out_ += ',';
  comma_ = false;
}

void JsonBytes::end_word() {
  std::string_view word = word_;
  if (word.starts_with('-')) word.remove_prefix(1);
  const bool digits = !word.empty() && word[0] >= '0' && word[0] <= '9';  // as almost all are
  if (!digits && (same_word(word, "nan") || same_word(word, "inf") || same_word(word, "infinity"))) {
    ++repairs_;
    out_ += "null";
  } else {
    out_.append(word_, 0, longest_number);
  }
  word_.clear();
}

void JsonBytes::outside(char c) {
  if (!word_.empty()) {
    end_word();
    if (is(blank, c)) out_ += ' ';  // else two numbers would become one
  }
  if (is(blank, c)) return;
  if (colon_ && (c == ',' || c == '}')) {
    ++repairs_;
    out_ += "\"\"";
  }
  colon_ = c == ':';
  if (c == ',') {
    put_comma();
    comma_ = true;
    return;
  }
  if (comma_ && (c == ']' || c == '}')) {
    ++repairs_;
    comma_ = false;
  }
  put_comma();
  out_ += c;
  if (c == '"') {
    in_string_ = true;
    string_bytes_ = 0;
  }
}

void JsonBytes::inside(char c) {
  constexpr std::string_view escapes = "\"\\/bfnrtu";
  const bool too_long = ++string_bytes_ > longest_string;
  if (escape_) {
    escape_ = false;
    if (too_long) return;
    out_ += '\\';
    if (escapes.find(c) == std::string_view::npos) {
      ++repairs_;
      out_ += '\\';
      character(c);
    } else {
      out_ += c;
    }
    return;
  }
  if (c == '\\') {
    end_character();
    escape_ = true;
  } else if (c == '"') {
    end_character();
    out_ += c;
    in_string_ = false;
  } else if (!too_long || (!character_.empty() && continues_character(c))) {
    character(c);
  }
}

// Appends a byte of a string; those of a character beyond ASCII are held until it has ended.
void JsonBytes::character(char c) {
  if (!continues_character(c)) end_character();
  const auto byte = static_cast<unsigned char>(c);
  constexpr std::size_t longest_character = 4;
  if (byte >= 0x80) {
    if (character_.size() <= longest_character) character_ += c;
    return;
  }
  if (byte < 0x20) ++repairs_;
  out_ += byte < 0x20 ? ' ' : c;
}

void JsonBytes::end_character() {
  if (character_.empty()) return;
  const bool valid = character_at(character_, 0).bytes == character_.size();
  if (!valid) ++repairs_;
  out_ += valid ? character_ : "?";
  character_.clear();
}

bool JsonBytes::restart_at_next_event() {
  in_string_ = escape_ = comma_ = colon_ = false;
  character_.clear();
  word_.clear();
  bool line_begins = raw_at_ > 0 && raw_[raw_at_ - 1] == '\n';
  while (more()) {
    const char c = raw_[raw_at_];
    if (line_begins && c == '{') {
      out_ = "{\"traceEvents\":[";
      give();
      return true;
    }
    line_begins = c == '\n' || (line_begins && (c == ' ' || c == '\t' || c == '\r'));
    ++raw_at_;
  }
  out_.clear();
  give();
  return false;
}

}  // namespace harness::traces
