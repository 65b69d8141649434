#include "cli/clean_stream.h"

#include <string_view>

#include "base/text.h"

namespace harness::cli {

bool CleanStream::Buffer::hand_on(std::size_t bytes) {
  to_ << escaped_lines(std::string_view(waiting_).substr(0, bytes));
  waiting_.erase(0, bytes);
  return static_cast<bool>(to_);
}

void CleanStream::Buffer::pass(const std::string& text) {
  hand_on(waiting_.size());
  to_ << text;
}

CleanStream::Buffer::int_type CleanStream::Buffer::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
  const char byte = traits_type::to_char_type(character);
  return xsputn(&byte, 1) == 1 ? character : traits_type::eof();
}

std::streamsize CleanStream::Buffer::xsputn(const char* text, std::streamsize bytes) {
  waiting_.append(text, static_cast<std::size_t>(bytes));
  const std::size_t end = waiting_.rfind('\n');
  if (end != std::string::npos && !hand_on(end + 1)) return 0;
  return bytes;
}

int CleanStream::Buffer::sync() {
  return hand_on(waiting_.size()) && to_.flush() ? 0 : -1;
}

std::ostream& operator<<(std::ostream& out, const TerminalText& text) {
  auto* const clean = dynamic_cast<CleanStream*>(&out);
  if (clean == nullptr) return out << text.text;
  clean->buffer_.pass(text.text);
  return out;
}

const std::ostream& behind(const std::ostream& out) {
  const auto* const clean = dynamic_cast<const CleanStream*>(&out);
  return clean == nullptr ? out : clean->buffer_.to();
}

}  // namespace harness::cli
