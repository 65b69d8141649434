#pragma once

#include <ostream>
#include <streambuf>
#include <string>

namespace harness::cli {

/// A text that may hold a terminal's own sequences: tables in colour, whose cells are clean.
struct TerminalText {
  std::string text;
};

/// The stream of all that a verb prints. Whatever came into it from a file, a path or a host name, its lines leave it
/// escaped() for a terminal; TerminalText alone passes as it is. Line by line, and at each flush.
class CleanStream : public std::ostream {
 public:
  explicit CleanStream(std::ostream& to) : std::ostream(nullptr), buffer_(to) { rdbuf(&buffer_); }
  ~CleanStream() override { flush(); }

 private:
  class Buffer : public std::streambuf {
   public:
    explicit Buffer(std::ostream& to) : to_(to) {}
    std::ostream& to() const { return to_; }
    void pass(const std::string& text);

   protected:
    int_type overflow(int_type character) override;
    std::streamsize xsputn(const char* text, std::streamsize bytes) override;
    int sync() override;

   private:
    bool hand_on(std::size_t bytes);
    std::ostream& to_;
    std::string waiting_;
  };
  friend std::ostream& operator<<(std::ostream& out, const TerminalText& text);
  friend const std::ostream& behind(const std::ostream& out);
  Buffer buffer_;
};

std::ostream& operator<<(std::ostream& out, const TerminalText& text);
/// The stream that `out` writes to in the end.
const std::ostream& behind(const std::ostream& out);

}  // namespace harness::cli
