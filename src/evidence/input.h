#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace harness::evidence {

/// The bytes of a file, or of the standard input ("-"), in order. gzip is unpacked on the way. Memory does not grow
/// with the file. An Input of the standard input goes on where the one before it ended: what head() showed of it comes
/// once more. There may be one at a time.
class Input {
 public:
  /// Throws Error for a file that cannot be read and for one that is no regular file.
  explicit Input(const std::string& path);

  /// The path; of the standard input "standard input".
  const std::string& name() const { return name_; }
  bool is_packed() const;
  /// The first bytes, at most 1 MiB of them. read() returns them once more. To be called before the first read().
  std::string_view head();
  /// The next bytes, at most `most`; 0 at the end. Throws Error where the file breaks off within a gzip member, behind
  /// the last byte that could be unpacked.
  std::size_t read(char* to, std::size_t most);

  static constexpr std::size_t head_bytes = 1u << 20;

 private:
  struct Source;
  std::string name_;
  std::shared_ptr<Source> source_;
};

/// Lines of an Input as a person sees them: without ANSI escapes, control bytes and byte order mark. Line feeds,
/// carriage returns (progress bars) and both together end a line. A line is cut after its first MiB.
class Lines {
 public:
  explicit Lines(Input& input) : input_(input) {}

  /// False at the end. The text is valid until the next call.
  bool next(std::string_view& line);
  /// Line feeds before the line that next() returned, and one.
  std::int64_t number() const { return number_; }

 private:
  Input& input_;
  std::string buffer_, line_;
  std::size_t at_ = 0, feed_ = 0, return_ = 0;  // places in the buffer: here, the next line feed, carriage return
  std::int64_t number_ = 0, feeds_ = 0;
  bool returned_ = false;  // the last line ended with a carriage return
};

/// The whole text, for formats that are not read line by line. Throws Error if it is longer than `most`.
std::string whole_text(Input& input, std::size_t most);

}  // namespace harness::evidence
