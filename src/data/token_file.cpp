#include "data/loader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/text.h"

namespace harness::data {
namespace {

static_assert(std::endian::native == std::endian::little, "files of tokens are read as they lie in memory");

struct Header {
  std::array<char, 8> magic = {'H', 'A', 'R', 'N', 'T', 'O', 'K', '1'};
  std::uint32_t token_bytes = 0;
  std::uint32_t unused = 0;
  std::int64_t tokens = 0;
  std::int64_t vocabulary = 0;
};
static_assert(sizeof(Header) == 32);

// Reads until `to` is full or the file ends. Returns the number of bytes read.
std::size_t read_at(const std::string& path, int file, std::int64_t offset, std::span<char> to) {
  std::size_t used = 0;
  while (used < to.size()) {
    const ssize_t got =
        ::pread(file, to.data() + used, to.size() - used, static_cast<off_t>(offset) + static_cast<off_t>(used));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("data_file {} cannot be read: {}", path, std::strerror(errno));
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  return used;
}

template <class Token>
void widen(std::span<const char> bytes, std::span<std::int32_t> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    Token token = 0;
    std::memcpy(&token, bytes.data() + i * sizeof(Token), sizeof(Token));
    to[i] = static_cast<std::int32_t>(token);  // 4-byte tokens from 2^31 on become negative, which read() rejects
  }
}

}  // namespace

int usual_token_bytes(std::int64_t vocabulary) {
  return vocabulary <= std::numeric_limits<std::uint16_t>::max() + 1 ? 2 : 4;
}

TokenFile::TokenFile(std::string path, std::int64_t vocabulary) : path_(std::move(path)), vocabulary_(vocabulary) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  file_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file_ && errno == ENOENT) {
    fail(
        "data_file {} does not exist on this node; `harness make-tokens` writes one, and a relative path is taken "
        "from the folder in which the job was started",
        path_);
  }
  if (!file_) fail("data_file {} cannot be read: {}", path_, std::strerror(errno));
  struct stat status {};
  if (::fstat(file_.number(), &status) != 0) fail("data_file {} cannot be read: {}", path_, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail("data_file {} is not a regular file", path_);
  const std::int64_t bytes = status.st_size;

  Header header;
  const std::array<char, 8> magic = header.magic;
  std::array<char, sizeof(Header)> text{};
  const std::size_t there = read_at(path_, file_.number(), 0, text);
  std::memcpy(&header, text.data(), sizeof header);
  token_bytes_ = usual_token_bytes(vocabulary);
  if (there == sizeof header && header.magic == magic) {
    if (header.token_bytes != 2 && header.token_bytes != 4)
      fail("data_file {} has a damaged header: tokens of {} bytes, where 2 or 4 are possible", path_,
           header.token_bytes);
    if (header.vocabulary > vocabulary)
      fail(
          "data_file {} holds tokens of a vocabulary of {}, but the model's vocab is {}; write it anew with `harness "
          "make-tokens --vocabulary {}`, or change model.vocab",
          path_, header.vocabulary, vocabulary, vocabulary);
    token_bytes_ = static_cast<int>(header.token_bytes);
    first_byte_ = sizeof header;
  }
  tokens_ = (bytes - first_byte_) / token_bytes_;
  if (first_byte_ > 0 && header.tokens != tokens_) {
    fail("data_file {} has {} tokens, but its header says {}: it was not written or copied to its end", path_, tokens_,
         header.tokens);
  }
  // Only an advice, so its result does not matter.
  static_cast<void>(::posix_fadvise(file_.number(), 0, 0, POSIX_FADV_DONTNEED));
}

void TokenFile::read(std::int64_t first, std::span<std::int32_t> to) const {
  const auto count = static_cast<std::int64_t>(to.size());
  if (first < 0 || first + count > tokens_)
    fail("data_file {}: tokens {} to {} were wanted of {}", path_, first, first + count, tokens_);
  std::vector<char> bytes(to.size() * static_cast<std::size_t>(token_bytes_));
  const std::int64_t offset = first_byte_ + first * token_bytes_;
  const std::size_t there = read_at(path_, file_.number(), offset, bytes);
  if (there < bytes.size()) {
    fail("data_file {}: token {} cannot be read: the file had {} tokens when it was opened, and was cut short since",
         path_, first + static_cast<std::int64_t>(there) / token_bytes_, tokens_);
  }
  token_bytes_ == 2 ? widen<std::uint16_t>(bytes, to) : widen<std::uint32_t>(bytes, to);
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] >= 0 && to[i] < vocabulary_) continue;
    fail("data_file {}: token {} is {}, but the model's vocab is {}{}", path_, first + static_cast<std::int64_t>(i),
         static_cast<std::uint32_t>(to[i]), vocabulary_,
         first_byte_ > 0 ? ""
                         : fmt::format("; a file without the header of `harness make-tokens` is read as tokens of {} "
                                       "bytes for this vocab",
                                       token_bytes_));
  }
}

void make_token_file(std::int64_t tokens, std::int64_t vocabulary, std::uint64_t seed,
                     const std::function<void(std::span<const char>)>& write) {
  constexpr std::int64_t at_once = 1 << 16;
  Header header;
  header.token_bytes = static_cast<std::uint32_t>(usual_token_bytes(vocabulary));
  header.tokens = tokens;
  header.vocabulary = vocabulary;
  std::vector<char> piece(sizeof header);
  std::memcpy(piece.data(), &header, sizeof header);
  write(piece);
  for (std::int64_t first = 0; first < tokens; first += at_once) {
    const std::int64_t count = std::min(at_once, tokens - first);
    piece.resize(static_cast<std::size_t>(count) * header.token_bytes);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t token = synthetic_token(seed, static_cast<std::uint64_t>(first + i), vocabulary);
      std::memcpy(piece.data() + static_cast<std::size_t>(i) * header.token_bytes, &token, header.token_bytes);
    }
    write(piece);
  }
}

}  // namespace harness::data
