#include "workloads/gpt/documents.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"
#include "base/random.h"

namespace harness::gpt {

Documents::Documents(const Settings& settings, std::int64_t sequence, std::int64_t rows, std::uint64_t seed)
    : sequences_(settings.sequences), packs_(settings.packs()), sequence_(sequence), rows_(rows), seed_(seed) {
  if (sequences_.lengths == config::DocumentLengths::file) lengths_ = config::read_document_lengths(sequences_.file);
  constexpr std::int64_t drawn = 1024;
  std::int64_t tokens = 0;
  for (std::int64_t i = 0; i < drawn; ++i) tokens += length(0, static_cast<std::uint64_t>(i));
  most_of_a_row_ = std::min(sequence, 8 + 4 * sequence * drawn / tokens);
}

std::int64_t Documents::length(std::uint64_t seed, std::uint64_t index) const {
  constexpr std::uint64_t length_stream = 2;  // 0 numbers the parameters, 1 the tokens
  const auto below = [&](std::int64_t n) {
    const std::uint64_t bits = philox(seed, index, length_stream)[0];
    return static_cast<std::int64_t>(bits * static_cast<std::uint64_t>(n) >> 32);
  };
  std::int64_t drawn = sequence_;
  switch (sequences_.lengths) {
    case config::DocumentLengths::full:
      break;
    case config::DocumentLengths::lognormal: {
      const double exponent = sequences_.sigma * philox_normal(seed, index, length_stream);
      const double length = static_cast<double>(sequences_.median) * std::exp(exponent);
      drawn = static_cast<std::int64_t>(std::min(length + 0.5, static_cast<double>(sequence_)));
      break;
    }
    case config::DocumentLengths::uniform:
      drawn = sequences_.min + below(sequences_.max - sequences_.min + 1);
      break;
    case config::DocumentLengths::file:
      drawn = lengths_[static_cast<std::size_t>(below(static_cast<std::int64_t>(lengths_.size())))];
      break;
  }
  return std::clamp<std::int64_t>(drawn, 1, sequence_);
}

std::vector<Document> Documents::of_step(std::int64_t step) const {
  const std::int64_t most_of_a_step = rows_ * sequence_;
  std::vector<Document> documents;
  struct Open {
    std::int64_t row, used, documents;
  };
  constexpr std::size_t most_open = 16;
  std::vector<Open> open;
  std::int64_t begun = 0;
  for (std::int64_t number = 0;; ++number) {
    const std::int64_t needed = length(seed_, static_cast<std::uint64_t>(step * most_of_a_step + number));
    const auto has_room = [&](const Open& row) { return packs_ && row.used + needed <= sequence_; };
    auto place = std::ranges::find_if(open, has_room);
    if (place == open.end()) {
      if (begun == rows_) return documents;
      if (open.size() == most_open) open.erase(open.begin());
      place = open.insert(open.end(), {begun++, 0, 0});
    }
    documents.push_back({number, place->row, place->used, needed});
    place->used += needed;
    if (place->used == sequence_ || ++place->documents == most_of_a_row_) open.erase(place);
  }
}

Filling filled_by(const Settings& settings, std::int64_t sequence, std::int64_t rows) {
  if (!settings.has_documents()) return {};
  constexpr std::int64_t enough_documents = 8192, enough_rows = 512;
  rows = std::min(rows, enough_rows);
  const Documents documents(settings, sequence, rows, 0);
  const auto whole = static_cast<double>(sequence);
  double tokens = 0, squares = 0;
  std::int64_t drawn = 0, step = 0;
  for (; drawn < enough_documents; ++step) {
    for (const Document& document : documents.of_step(step)) {
      const double share = static_cast<double>(document.length) / whole;
      tokens += share;
      squares += share * share;
      ++drawn;
    }
  }
  const double all = static_cast<double>(rows) * static_cast<double>(step);
  return {tokens / all, squares / all};
}

}  // namespace harness::gpt
