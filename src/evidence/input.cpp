#include "evidence/input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#ifdef HARNESS_HAS_ZLIB
#include <zlib.h>
#endif

namespace harness::evidence {
namespace {

constexpr std::size_t chunk = 1u << 16, longest_line = 1u << 20;
constexpr std::string_view gzip_mark = "\x1f\x8b";

// Drops ANSI escapes (ECMA-48: CSI and OSC sequences, and those of two bytes) and control bytes in place.
void clean(std::string& line) {
  const auto odd = [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; };
  if (line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);
  if (std::ranges::none_of(line, odd)) return;
  std::size_t out = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      const char kind = i + 1 < line.size() ? line[i + 1] : '\0';
      ++i;
      if (kind == '[') {
        do ++i;
        while (i < line.size() && (line[i] < '@' || line[i] > '~'));
      } else if (kind == ']') {
        while (i < line.size() && line[i] != '\a' && line[i] != '\x1b') ++i;
      }
    } else if (!odd(line[i])) {
      line[out++] = line[i];
    }
  }
  line.resize(out);
}

}  // namespace

#ifdef HARNESS_HAS_ZLIB
struct Input::Unpacker {
  z_stream stream{};
  std::string packed = std::string(chunk, '\0');
  bool within = false;  // a member has begun and not ended

  Unpacker() {
    constexpr int gzip_only = 16 + MAX_WBITS;
    if (::inflateInit2(&stream, gzip_only) != Z_OK) fail("zlib could not be started");
  }
  ~Unpacker() { ::inflateEnd(&stream); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
};

std::size_t Input::unpacked(char* to, std::size_t most) {
  z_stream& z = unpacker_->stream;
  z.next_out = reinterpret_cast<Bytef*>(to);
  z.avail_out = static_cast<uInt>(most);
  while (z.avail_out == most) {
    if (z.avail_in == 0) {
      z.avail_in = static_cast<uInt>(raw(unpacker_->packed.data(), unpacker_->packed.size()));
      z.next_in = reinterpret_cast<Bytef*>(unpacker_->packed.data());
      if (z.avail_in == 0 && z.avail_out < most) break;
      if (z.avail_in == 0 && unpacker_->within) fail("{}: the gzip data breaks off", quote(name_));
      if (z.avail_in == 0) return 0;
    }
    unpacker_->within = true;
    const int result = ::inflate(&z, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {  // files that were joined with cat have several members
      ::inflateReset(&z);
      unpacker_->within = false;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      if (z.avail_out < most) break;
      fail("{}: the gzip data is damaged", quote(name_));
    }
  }
  return most - z.avail_out;
}
#else
struct Input::Unpacker {};

std::size_t Input::unpacked(char*, std::size_t) {
  fail("{}: it is packed with gzip, and this harness was built without zlib: zcat FILE | harness read -", quote(name_));
}
#endif

Input::Input(const std::string& path)
    : name_(path == "-" ? "standard input" : path), descriptor_(path == "-" ? STDIN_FILENO : -1) {
  if (path != "-") {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor_ < 0) fail("{}: cannot be read: {}", quote(path), std::strerror(errno));
    opened_ = true;
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
      ::close(descriptor_);
      fail("{}: cannot be read: it is {}", quote(path),
           S_ISDIR(status.st_mode) ? "a directory" : "a device or pipe, not a regular file; pipe it into `read -`");
    }
  }
  try {
    begin();
  } catch (...) {
    if (opened_) ::close(descriptor_);
    throw;
  }
}

struct Input::Kept {
  std::unique_ptr<Unpacker> unpacker;
  std::string head;
  std::size_t head_used = 0;
  bool began = false;
};

Input::Kept& Input::kept() {
  static Kept of_standard_input;
  return of_standard_input;
}

void Input::begin() {
  if (!opened_ && kept().began) {
    unpacker_ = std::move(kept().unpacker);
    head_ = std::move(kept().head);
    head_used_ = kept().head_used;
    began_ = true;
    return;
  }
  head_.resize(gzip_mark.size());
  head_.resize(raw(head_.data(), head_.size()));
  began_ = true;
  if (head_ != gzip_mark) return;
  unpacker_ = std::make_unique<Unpacker>();
#ifdef HARNESS_HAS_ZLIB
  unpacker_->packed.replace(0, head_.size(), head_);
  unpacker_->stream.next_in = reinterpret_cast<Bytef*>(unpacker_->packed.data());
  unpacker_->stream.avail_in = static_cast<uInt>(head_.size());
#endif
  head_.clear();
}

Input::~Input() {
  if (opened_) {
    ::close(descriptor_);
  } else if (began_) {
    kept() = {std::move(unpacker_), std::move(head_), head_used_, true};
  }
}

// Fills as much as there is: pipes give their bytes in small portions.
std::size_t Input::raw(char* to, std::size_t most) {
  std::size_t got = 0;
  while (got < most) {
    const ssize_t n = ::read(descriptor_, to + got, most - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("{}: cannot be read: {}", quote(name_), std::strerror(errno));
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return got;
}

std::string_view Input::head() {
  while (head_.size() < head_bytes) {
    const std::size_t had = head_.size(), room = std::min(chunk, head_bytes - had);
    head_.resize(had + room);
    const std::size_t got = unpacker_ ? unpacked(head_.data() + had, room) : raw(head_.data() + had, room);
    head_.resize(had + got);
    if (got == 0) break;
  }
  return head_;
}

std::size_t Input::read(char* to, std::size_t most) {
  if (head_used_ < head_.size()) {
    const std::size_t n = std::min(most, head_.size() - head_used_);
    std::memcpy(to, head_.data() + head_used_, n);
    head_used_ += n;
    if (head_used_ == head_.size()) {
      head_.clear();
      head_.shrink_to_fit();
      head_used_ = 0;
    }
    return n;
  }
  return unpacker_ ? unpacked(to, most) : raw(to, most);
}

bool Lines::next(std::string_view& line) {
  line_.clear();
  number_ = feeds_ + 1;
  bool any = false;
  while (true) {
    if (at_ == buffer_.size()) {
      buffer_.resize(chunk);
      buffer_.resize(input_.read(buffer_.data(), buffer_.size()));
      at_ = 0;
      feed_ = std::min(buffer_.find('\n'), buffer_.size());
      return_ = std::min(buffer_.find('\r'), buffer_.size());
      if (buffer_.empty()) {
        if (!any) return false;
        break;
      }
    }
    any = true;
    if (feed_ < at_) feed_ = std::min(buffer_.find('\n', at_), buffer_.size());
    if (return_ < at_) return_ = std::min(buffer_.find('\r', at_), buffer_.size());
    const std::size_t end = std::min(feed_, return_);
    if (line_.size() < longest_line) line_.append(buffer_, at_, std::min(end - at_, longest_line - line_.size()));
    at_ = end;
    if (at_ == buffer_.size()) continue;
    if (buffer_[at_++] == '\n') ++feeds_;
    break;
  }
  clean(line_);
  line = line_;
  return true;
}

std::string whole_text(Input& input, std::size_t most) {
  std::string text;
  while (true) {
    const std::size_t had = text.size();
    text.resize(had + chunk);
    const std::size_t got = input.read(text.data() + had, chunk);
    text.resize(had + got);
    if (got == 0) return text;
    if (text.size() > most)
      fail("{}: it is longer than {}, the most that is read of this kind", quote(input.name()),
           print_bytes_exact(static_cast<std::int64_t>(most)));
  }
}

}  // namespace harness::evidence
