#include "evidence/input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#ifdef HARNESS_HAS_ZLIB
#include <zlib.h>
#endif

namespace harness::evidence {
namespace {

constexpr std::size_t chunk = 1u << 16, longest_line = 1u << 20;

// Undoes docker's {"log":"…"} and HTML's "-&gt;", then drops ANSI escapes (ECMA-48: CSI and OSC sequences, and those of
// two bytes) and control bytes in place.
void clean(std::string& line) {
  if (line.starts_with("{\"log\":\"")) {
    const std::string said = text_at(Json::parse(line, nullptr, false), "log");
    if (!said.empty()) line = said;
  }
  if (contains(line, "&")) line = replaced_all(replaced_all(line, "&gt;", ">"), "&lt;", "<");
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

// zlib passes uncompressed files through. Without zlib nothing is unpacked.
struct Input::Source {
  explicit Source(int opened) : descriptor(opened) {
#ifdef HARNESS_HAS_ZLIB
    file = ::gzdopen(descriptor, "rb");
    if (file == nullptr || ::gzbuffer(file, chunk) != 0) fail("zlib could not be started");
#endif
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  int descriptor;
  std::string head;
  std::size_t head_used = 0;
#ifdef HARNESS_HAS_ZLIB
  ~Source() {
    ::gzclose_r(file);
  }
  bool is_packed() const {
    return ::gzdirect(file) == 0;
  }
  std::size_t read(char* to, std::size_t most, const std::string& name) {
    ::gzclearerr(file);  // standard input may continue after an end of file
    const int got = ::gzread(file, to, static_cast<unsigned>(most));
    int error = Z_OK;
    ::gzerror(file, &error);
    if (got <= 0 && error == Z_ERRNO) fail("{}: cannot be read: {}", quote(name), std::strerror(errno));
    if (got <= 0 && error == Z_BUF_ERROR) fail("{}: the gzip data breaks off", quote(name));
    if (got < 0) fail("{}: the gzip data is damaged", quote(name));
    return static_cast<std::size_t>(got);
  }

 private:
  gzFile file = nullptr;
#else
  ~Source() {
    ::close(descriptor);
  }
  bool is_packed() const {
    return false;
  }
  std::size_t read(char* to, std::size_t most, const std::string& name) {
    std::size_t got = 0;
    while (got < most) {  // pipes deliver small chunks
      const ssize_t n = ::read(descriptor, to + got, most - got);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("{}: cannot be read: {}", quote(name), std::strerror(errno));
      if (n == 0) break;
      got += static_cast<std::size_t>(n);
    }
    if (!began && std::string_view(to, got).starts_with("\x1f\x8b"))
      fail("{}: it is packed with gzip, and this harness was built without zlib: zcat FILE | harness read -",
           quote(name));
    began = true;
    return got;
  }

 private:
  bool began = false;
#endif
};

Input::Input(const std::string& path) : name_(path == "-" ? "standard input" : path) {
  if (path == "-") {  // shared: the next Input continues where this one ends
    static const std::shared_ptr<Source> standard_input = std::make_shared<Source>(STDIN_FILENO);
    source_ = standard_input;
    return;
  }
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail("{}: cannot be read: {}", quote(path), std::strerror(errno));
  source_ = std::make_shared<Source>(descriptor);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    fail("{}: cannot be read: it is {}", quote(path),
         S_ISDIR(status.st_mode) ? "a directory" : "a device or pipe, not a regular file; pipe it into `read -`");
}

bool Input::is_packed() const {
  return source_->is_packed();
}

std::string_view Input::head() {
  std::string& head = source_->head;
  while (head.size() < head_bytes) {
    const std::size_t had = head.size(), room = std::min(chunk, head_bytes - had);
    head.resize(had + room);
    const std::size_t got = source_->read(head.data() + had, room, name_);
    head.resize(had + got);
    if (got == 0) break;
  }
  return head;
}

std::size_t Input::read(char* to, std::size_t most) {
  std::string& head = source_->head;
  if (head.empty()) return source_->read(to, most, name_);
  const std::size_t n = head.copy(to, most, source_->head_used);
  source_->head_used += n;
  if (source_->head_used == head.size()) {
    head = {};
    source_->head_used = 0;
  }
  return n;
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
    if (feed_ < at_) feed_ = std::min(buffer_.find('\n', at_), buffer_.size());
    if (return_ < at_) return_ = std::min(buffer_.find('\r', at_), buffer_.size());
    if (std::exchange(returned_, false) && feed_ == at_) {  // "\r\n" is one line end
      ++at_;
      number_ = ++feeds_ + 1;
      continue;
    }
    any = true;
    const std::size_t end = std::min(feed_, return_);
    if (line_.size() < longest_line) line_.append(buffer_, at_, std::min(end - at_, longest_line - line_.size()));
    at_ = end;
    if (at_ == buffer_.size()) continue;
    returned_ = buffer_[at_++] == '\r';
    feeds_ += returned_ ? 0 : 1;
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
