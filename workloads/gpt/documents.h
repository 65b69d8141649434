#pragma once

#include <cstdint>
#include <vector>

#include "workloads/gpt/gpt.h"

namespace harness::gpt {

/// A document of a step: `length` positions of a row of the global batch, from `first` on. Each predicts the next
/// token; after the last token, that is the document's end.
struct Document {
  std::int64_t number = 0;  // in the step
  std::int64_t row = 0, first = 0, length = 0;
};

/// The documents of each step. They depend on the seed, the step and their number in it alone: all ranks agree on them,
/// and the documents of a padded step are the first ones of a packed step.
class Documents {
 public:
  /// Reads the file of lengths, if there is one; throws Error. `rows`: sequences of the global batch.
  Documents(const Settings& settings, std::int64_t sequence, std::int64_t rows, std::uint64_t seed);

  /// Returns the documents in the order of their numbers. When padded, each has a row. When packed, each goes into the
  /// first of at most 16 open rows with room for it (first fit), and the first document without a row ends the step; so
  /// neighbouring rows are about equally full, whichever rank has them. A row that holds most_of_a_row() has no room.
  std::vector<Document> of_step(std::int64_t step) const;

  /// Maximum number of packed documents in a row: 8 plus four times as many as a row holds at mean length. It sizes the
  /// kernels' tables and is the same for all seeds, as is the step.
  std::int64_t most_of_a_row() const { return most_of_a_row_; }

 private:
  std::int64_t length(std::uint64_t seed, std::uint64_t index) const;

  config::Sequences sequences_;
  bool packs_;
  std::int64_t sequence_, rows_;
  std::uint64_t seed_;
  std::vector<std::int64_t> lengths_;  // of the file
  std::int64_t most_of_a_row_ = 0;
};

/// Returns the share of a batch's sequences that documents fill, averaged over many steps; 1 without documents.
/// `attention`: the sum of length^2 over the documents of a row / sequence^2.
Filling filled_by(const Settings& settings, std::int64_t sequence, std::int64_t rows);

}  // namespace harness::gpt
