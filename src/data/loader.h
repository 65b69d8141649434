#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include "base/file.h"
#include "base/random.h"
#include "config/settings.h"
#include "program/memory.h"
#include "program/program.h"

namespace harness::data {

// A file of token ids: unsigned integers of 2 or 4 bytes, little-endian, one after another, as in the .bin files of
// Megatron-LM and nanoGPT. `harness make-tokens` writes a header of 32 bytes before them; a file without one starts
// with its first token.

/// Returns the bytes per token in a file of this vocabulary, unless its header states otherwise: 2 up to 65,536 tokens,
/// else 4.
int usual_token_bytes(std::int64_t vocabulary);

/// Returns the token at a position of the synthetic data of a seed, in [0, vocabulary). Identical on every rank.
inline std::int32_t synthetic_token(std::uint64_t seed, std::uint64_t position, std::int64_t vocabulary) {
  constexpr std::uint64_t token_stream = 1;  // stream 0 numbers the parameters
  const std::uint64_t bits = philox(seed, position, token_stream)[0];
  return static_cast<std::int32_t>(bits * static_cast<std::uint64_t>(vocabulary) >> 32);
}

/// A file of tokens, open for reading. Uses pread() and not a memory map, so that a file truncated while it is read
/// causes an Error and not SIGBUS. Opening it advises the kernel to drop the file from the page cache, so that every
/// block reads from storage, whichever case ran before it.
class TokenFile {
 public:
  /// `vocabulary`: of the trained model. Throws an Error that names the file if it cannot be read, is not a regular
  /// file, has a damaged header or another length than its header states, or holds the tokens of a larger vocabulary.
  TokenFile(std::string path, std::int64_t vocabulary);

  const std::string& path() const { return path_; }
  std::int64_t tokens() const { return tokens_; }

  /// Reads to.size() tokens from index `first` on; throws Error if the file does not have them. Several threads may
  /// read at once. Throws an Error that names file and token for a token outside the vocabulary and for a file
  /// truncated since it was opened, and one that names the file for a failure of the storage.
  void read(std::int64_t first, std::span<std::int32_t> to) const;

 private:
  std::string path_;
  std::int64_t vocabulary_;
  Descriptor file_;
  std::int64_t first_byte_ = 0;  // of the first token
  std::int64_t tokens_ = 0;
  int token_bytes_ = 0;
};

/// Passes to `write`, piece by piece, a file with a header and the first `tokens` synthetic tokens of a seed.
void make_token_file(std::int64_t tokens, std::int64_t vocabulary, std::uint64_t seed,
                     const std::function<void(std::span<const char>)>& write);

// ---- a step's batches ----------------------------------------------------------------------------------------------

/// The data loading of a rank for each step (`loader_…`, config/settings.h).
struct Loading {
  int workers = 0;         // 0: the step itself loads
  int prefetch = 1;        // batches loaded ahead of the one in use
  double tokens = 0;       // per batch
  double bytes = 0;        // per batch in the file, 2 or 4 a token by the vocabulary
  double bytes_per_s = 0;  // a rank's storage throughput, all workers together; 0: not throttled
  double cost_s = 0;       // core time of a worker per token

  /// Returns the time that each step waits for its batch, if it takes `step_s` without waiting: batches arrive every
  /// max(bytes / throughput, time to load one alone / concurrent batches), and workers load them behind the step.
  double exposed_s(double step_s) const;
};
/// `tokens`: in a rank's batch. Returns an empty Loading if the settings name no data_file or there are no tokens.
Loading loading_of(const config::Settings& settings, double tokens, std::int64_t vocabulary);
/// Returns the tokens per batch in the inputs of a rank's Program; 0 if it has none, as in the middle of a pipeline.
double tokens_of(const program::Program& program);

/// Storage with a limited throughput: a token bucket of capacity 0, so that idle time earns no credit.
class Throttle {
 public:
  explicit Throttle(double bytes_per_s) : bytes_per_s_(bytes_per_s) {}  // 0: no limit
  /// Returns the time when bytes requested now are delivered. Requests are served one after another.
  double serve(double now_s, double bytes);

 private:
  double bytes_per_s_;
  double free_at_s_ = -std::numeric_limits<double>::infinity();
};

/// An InputSource that loads the batches of another source ahead: `workers` threads load a batch each, in step order,
/// into a ring of `prefetch` batches. The values are the other source's. Without workers, fill() loads. One thread at a
/// time calls fill(), with steps in ascending order; a step may be filled again before the next one, and a step out of
/// order empties the ring. The fill() of a step rethrows a failure of the other source. The threads start with the
/// first fill(), so that slow storage gets no head start before the first step. The destructor joins them, so it blocks
/// while one waits for storage that does not answer.
class Loader final : public program::InputSource {
 public:
  /// `program`: its inputs are filled. `source`: several threads call its fill() at once.
  Loader(std::unique_ptr<program::InputSource> source, const program::Program& program, const Loading& loading);
  ~Loader() override;

  void fill(const std::string& buffer, std::int64_t step, std::span<std::byte> to) const override;
  bool is_part_of_step() const override { return true; }
  bool is_loaded_by_step() const override;

 private:
  class Ring;
  std::unique_ptr<Ring> ring_;
};

/// Wraps `source` in a Loader if the settings name a data_file and the Program has tokens, else returns it.
std::unique_ptr<program::InputSource> with_loader(std::unique_ptr<program::InputSource> source,
                                                  const program::Program& program, const config::Settings& settings,
                                                  std::int64_t vocabulary);

}  // namespace harness::data
