#pragma once

#include <cstdint>
#include <vector>

#include "workloads/gpt/gpt.h"

namespace harness::gpt {

/// A document of a step: `length` positions of a row of the global batch, from `first` on. Each predicts the token that
/// follows it; after the last that is the document's end.
struct Document {
  std::int64_t number = 0;  // in the step
  std::int64_t row = 0, first = 0, length = 0;
};

/// The documents of each step. They follow from the seed, the step and their number in it alone: all ranks agree on
/// them, and those of a padded step are the first ones of a packed one.
class Documents {
 public:
  /// Reads the file of lengths, where they come from one: throws Error. `rows`: sequences of the global batch.
  Documents(const Settings& settings, std::int64_t sequence, std::int64_t rows, std::uint64_t seed);

  /// In the order of their numbers. Packed, each goes into the first of at most 16 rows that are open and has room for
  /// it (first fit), and the first that has no row ends the step; so neighbouring rows are about equally full, whoever
  /// has them. A row that holds most_of_a_row() has no room.
  std::vector<Document> of_step(std::int64_t step) const;

  /// Four times as many packed documents as rows hold of mean length, and eight: the size of kernels' tables. The same
  /// for all seeds, as is the step.
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

/// What documents fill of the sequences of a batch, in the mean over many steps; 1 where there are none. `attention`:
/// the sum of length^2 over the documents of a row / sequence^2.
Filling filled_by(const Settings& settings, std::int64_t sequence, std::int64_t rows);

}  // namespace harness::gpt
