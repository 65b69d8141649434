#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/file.h"
#include "base/random.h"

namespace harness::data {

// A file of token ids: unsigned integers of 2 or 4 bytes, little-endian, one after another, as in the .bin files of
// Megatron-LM and nanoGPT. `harness make-tokens` writes a header of 32 bytes before them; a file without one is taken
// as it is.

/// Bytes of a token in a file of this vocabulary, unless its header says otherwise: 2 up to 65,536 tokens, else 4.
int usual_token_bytes(std::int64_t vocabulary);

/// The token at a position of the synthetic data of a seed, in [0, vocabulary). The same on every rank.
inline std::int32_t synthetic_token(std::uint64_t seed, std::uint64_t position, std::int64_t vocabulary) {
  constexpr std::uint64_t token_stream = 1;  // stream 0 numbers the parameters
  const std::uint64_t bits = philox(seed, position, token_stream)[0];
  return static_cast<std::int32_t>(bits * static_cast<std::uint64_t>(vocabulary) >> 32);
}

/// A file of tokens, open for reading. Read by pread and not through a memory map: a file that is cut short while it is
/// read is an Error and no SIGBUS. Opening it asks the kernel to forget what it holds of the file in its page cache, so
/// that every block reads from storage, whichever case ran before it.
class TokenFile {
 public:
  /// `vocabulary`: of the model that is trained. Throws Error, naming the file, if it cannot be read, is no regular
  /// file, is shorter than its header says, or holds the tokens of a larger vocabulary.
  TokenFile(std::string path, std::int64_t vocabulary);

  const std::string& path() const { return path_; }
  std::int64_t tokens() const { return tokens_; }
  int token_bytes() const { return token_bytes_; }

  /// Reads the tokens from number `first` on, as many as `to` has place for, which must be in the file. Several threads
  /// may read at once. Throws Error, naming file and token, for a token beyond the vocabulary, if the file is shorter
  /// than it was, and for a failure of the storage.
  void read(std::int64_t first, std::span<std::int32_t> to) const;

 private:
  std::string path_;
  std::int64_t vocabulary_;
  Descriptor file_;
  std::int64_t first_byte_ = 0;  // of the first token
  std::int64_t tokens_ = 0;
  int token_bytes_ = 0;
};

/// The bytes of a file with header that holds the first `tokens` synthetic tokens of a seed, passed to `write` piece by
/// piece.
void make_token_file(std::int64_t tokens, std::int64_t vocabulary, std::uint64_t seed,
                     const std::function<void(std::span<const char>)>& write);

}  // namespace harness::data
