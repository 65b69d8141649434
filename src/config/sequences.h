#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace harness::config {

/// Where the lengths of documents come from.
enum class DocumentLengths : std::uint8_t {
  full,       // every document is as long as a sequence: there is no padding
  lognormal,  // median * exp(sigma * normal)
  uniform,    // min to max, each as often
  file,       // drawn from the lengths in a text file
};

/// The compound variable `sequences`. Members of other distributions keep their defaults. Lengths are in tokens; what
/// is longer than a sequence is cut to it.
struct Sequences {
  DocumentLengths lengths = DocumentLengths::full;
  std::int64_t median = 512;
  double sigma = 1;
  std::int64_t min = 1, max = 1024;
  std::string file;
  bool operator==(const Sequences&) const = default;
};

/// How documents that are shorter than a sequence lie in the rows of a batch.
enum class Batching : std::uint8_t {
  padded,  // one in each row, padding behind it
  packed,  // several in a row, each of which sees itself alone
};

/// The lengths in a text file, separated by blanks, commas or line ends. Throws Error that names the file and what is
/// wrong with it.
std::vector<std::int64_t> read_document_lengths(const std::string& path);

}  // namespace harness::config
