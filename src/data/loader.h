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

// ---- a step's batches ----------------------------------------------------------------------------------------------

/// What a rank loads for each step, and how (`loader_…`, config/settings.h).
struct Loading {
  int workers = 0;         // 0: on the step's path
  int prefetch = 1;        // batches that are loaded ahead of the one in use
  double tokens = 0;       // of a batch
  double bytes = 0;        // of these in the file, 2 or 4 a token by the vocabulary
  double bytes_per_s = 0;  // that the storage gives a rank, all workers together; 0: as fast as it is
  double cost_s = 0;       // of a worker's core, for each token

  /// From reading a batch to having it, where nothing else is loaded meanwhile.
  double batch_s() const;
  /// The time of each step that is spent waiting for its batch, if the step takes `step_s` without that: batches come
  /// every max(bytes / throughput, batch_s() / batches at once), and a worker loads them behind the step.
  double exposed_s(double step_s) const;
};
/// `tokens`: of a rank's batch. Loads nothing where the settings name no data_file or there are no tokens.
Loading loading_of(const config::Settings& settings, double tokens, std::int64_t vocabulary);
/// The tokens of a batch as the inputs of a rank's Program have them; 0: it has none, as in the middle of a pipeline.
double tokens_of(const program::Program& program);
/// The same of the first and the last stage of a training step, from what a configuration says.
double tokens_of(const config::Model& model, const config::Settings& settings, const program::Layout& layout);

/// A storage with a limited throughput: a token bucket that holds nothing, so that what it does not deliver while
/// nobody asks is lost.
class Throttle {
 public:
  explicit Throttle(double bytes_per_s) : bytes_per_s_(bytes_per_s) {}  // 0: no limit
  /// When the bytes that are asked for now are there. Requests are served one after another.
  double serve(double now_s, double bytes);

 private:
  double bytes_per_s_;
  double free_at_s_ = -std::numeric_limits<double>::infinity();
};

/// An InputSource before another one, whose batches its threads load ahead: `workers` threads load a batch each, into a
/// ring of `prefetch` batches, in the order of the steps. The numbers are those of the other source. Without workers,
/// fill() loads. One thread at a time calls fill(), with steps in ascending order; a step may be filled again before
/// the next one, and a step out of order empties the ring. A failure of the other source is thrown by the fill() of its
/// step. The threads start with the first fill(), so that a slow storage is not given the time before the first step,
/// and end with the loader, but for one that waits for a storage that does not answer.
class Loader final : public program::InputSource {
 public:
  /// `program`: the inputs to be filled. `source`: its fill() is called by several threads at once.
  Loader(std::unique_ptr<program::InputSource> source, const program::Program& program, const Loading& loading);
  ~Loader() override;

  void fill(const std::string& buffer, std::int64_t step, std::span<std::byte> to) const override;
  bool is_part_of_step() const override { return true; }

 private:
  class Ring;
  std::unique_ptr<Ring> ring_;
};

/// `source` behind a Loader where the settings say so, else itself.
std::unique_ptr<program::InputSource> with_loader(std::unique_ptr<program::InputSource> source,
                                                  const program::Program& program, const config::Settings& settings,
                                                  std::int64_t vocabulary);

}  // namespace harness::data
