// Rows for the training data, how a rank loads it, document lengths, and how documents fill a batch.
#include <algorithm>

#include "base/file.h"
#include "base/units.h"
#include "config/registry_rows.h"

namespace harness::config {
namespace {

constexpr std::string_view synthetic = "synthetic", unlimited = "none";
constexpr int max_loader_threads = 256, max_ring = 4096;

// Restricts characters, because the path appears in YAML lists and maps, case names and tables.
void parse_data_file(Settings& s, std::string_view text) {
  const std::string_view path = trim(text);
  const auto fine = [](unsigned char c) {
    constexpr std::string_view marks = "./_-+=@~%";
    constexpr unsigned char beyond_ascii = 0x80;
    return c >= beyond_ascii || std::isalnum(c) != 0 || marks.find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (path.empty() || path.front() == '-' || path.back() == '/' || !std::ranges::all_of(path, fine)) {
    fail("found {}; allowed: {}, or the path of a file, of letters, digits and ./_-+=@~%", quote(text), synthetic);
  }
  s.data_file = path == synthetic ? "" : std::string(path);
}

void parse_loader_cost(Settings& s, std::string_view text) {
  s.loader_cost_s = parse_if(
      text, parse_seconds, [](double cost_s) { return cost_s >= 0 && cost_s <= 1; },
      "0 s to 1 s for each token, such as 2 us");
}

std::string without_file(const Settings& s) {
  return s.data_file.empty() ? "data_file is synthetic, so nothing is loaded" : "";
}

std::string without_workers(const Settings& s) {
  if (s.data_file.empty() || s.loader_workers > 0) return without_file(s);
  return "loader_workers is 0, so each batch is loaded when the step needs it";
}

constexpr std::array<Choice<DocumentLengths>, 4> length_choices{{{"full", DocumentLengths::full},
                                                                 {"lognormal", DocumentLengths::lognormal},
                                                                 {"uniform", DocumentLengths::uniform},
                                                                 {"file", DocumentLengths::file}}};
constexpr std::array<Choice<Batching>, 2> batching_choices{
    {{"padded", Batching::padded}, {"packed", Batching::packed}}};

const std::vector<std::string> sequence_parts{"distribution", "median", "sigma", "min", "max", "file"};

constexpr std::int64_t longest_document = std::int64_t{1} << 31;
constexpr double widest_sigma = 4;

// Returns the distribution that a part belongs to.
DocumentLengths distribution_of(std::string_view part) {
  if (part == "file") return DocumentLengths::file;
  return part == "min" || part == "max" ? DocumentLengths::uniform : DocumentLengths::lognormal;
}

void parse_part(Sequences& s, const std::string& part, std::string_view text) {
  if (distribution_of(part) != s.lengths) {
    fail("{} belongs to distribution {}, and the distribution is {}", part,
         word_of(distribution_of(part), length_choices), word_of(s.lengths, length_choices));
  }
  if (part == "sigma") {
    const auto sigma = number_in<double>(text);
    if (!sigma || !(*sigma >= 0) || *sigma > widest_sigma)
      fail("found {}; allowed: 0 to {}", quote(text), widest_sigma);
    s.sigma = *sigma == 0 ? 0 : *sigma;  // "-0"
  } else if (part == "file") {
    s.file = text;
  } else {
    std::int64_t& end = part == "min" ? s.min : s.max;
    (part == "median" ? s.median : end) = parse_within(text, 1, longest_document);
  }
}

// A named distribution starts from its defaults; without a name, parts change the current distribution.
void parse_sequences(Settings& settings, std::string_view text) {
  Sequences s = settings.sequences;
  if (text == "full") {
    settings.sequences = {};
    return;
  }
  const NameValues parts = parts_of(text, "{distribution: lognormal, median: 512, sigma: 1}");
  if (const std::string named = value_of(parts, "distribution"); !named.empty()) {
    s = {};
    s.lengths = parse_choice(named, length_choices);
  }
  for (const auto& [part, value] : parts) {
    if (word_index(part, sequence_parts) > 0) parse_part(s, part, value);
  }
  settings.sequences = s;
}

std::string print_sequences(const Settings& settings) {
  const Sequences& s = settings.sequences;
  switch (s.lengths) {
    case DocumentLengths::lognormal:
      return fmt::format("{{distribution: lognormal, median: {}, sigma: {}}}", s.median, s.sigma);
    case DocumentLengths::uniform:
      return fmt::format("{{distribution: uniform, min: {}, max: {}}}", s.min, s.max);
    case DocumentLengths::file:
      return print_map({{"distribution", "file"}, {"file", s.file}});
    case DocumentLengths::full:
      break;
  }
  return "full";
}

std::string refused_sequences(const Settings& settings, BackendKind /*backend*/) {
  const Sequences& s = settings.sequences;
  if (s.lengths == DocumentLengths::uniform && s.min > s.max)
    return fmt::format("min {} is more than max {}", s.min, s.max);
  if (s.lengths != DocumentLengths::file) return "";
  if (s.file.empty())
    return "distribution file needs the name of a file, such as {distribution: file, file: lengths.txt}";
  try {
    read_document_lengths(s.file);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::string conflict_with_context(const Settings& s) {
  if (!s.has_documents() || s.context() == 1) return "";
  return fmt::format(
      "sequences {} and context_parallel {} do not go together: documents of different lengths are not divided among "
      "ranks",
      print_sequences(s), s.context());
}

}  // namespace

std::vector<Variable> data_variables() {
  return {
      {.name = "data_file",
       .allowed = "synthetic, or a file's path",
       .choices = {{std::string(synthetic)}},
       .examples = {"tokens.bin"},
       .help =
           "the tokens of the training: made up, or read from a file of token ids of 2 or 4 bytes, as `harness "
           "make-tokens`, Megatron-LM (.bin) and nanoGPT write them; a relative path is taken from where the job is "
           "started",
       .parse = parse_data_file,
       .print = [](const Settings& s) { return s.data_file.empty() ? std::string(synthetic) : s.data_file; },
       .acts_on = {Part::loading},
       .fastest = std::string(synthetic),
       .mathematics = Mathematics::another},
      whole(&Settings::loader_workers, 0, max_loader_threads,
            {.name = "loader_workers",
             .examples = {"0", "8"},
             .help = "threads of a rank that load a batch of data_file each, ahead of the step; 0: the step loads its "
                     "own (PyTorch's num_workers). On cpu, auto leaves them as many fewer compute threads",
             .acts_on = {Part::loading},
             .without_effect = without_file}),
      whole(&Settings::loader_prefetch, 1, max_ring,
            {.name = "loader_prefetch",
             .examples = {"1", "16"},
             .help = "batches that are loaded ahead of the step, by all workers together (PyTorch: num_workers x "
                     "prefetch_factor)",
             .acts_on = {Part::loading},
             .without_effect = without_workers}),
      {.name = "loader_throughput",
       .allowed = "none, or a bandwidth such as 100 MB/s",
       .choices = {{std::string(unlimited)}},
       .examples = {"10 MB/s", "100 MB/s"},
       .help = "makes the storage of data_file slower: bytes per second that a rank gets of it, all its workers "
               "together; none: as fast as it is",
       .parse = [](Settings& s,
                   auto text) { s.loader_bytes_per_s = trim(text) == unlimited ? 0 : parse_bandwidth(text); },
       .print =
           [](const Settings& s) {
             return s.loader_bytes_per_s > 0 ? print_bandwidth_exact(s.loader_bytes_per_s) : std::string(unlimited);
           },
       .acts_on = {Part::loading},
       .fastest = std::string(unlimited),
       .without_effect = without_file},
      {.name = "loader_cost",
       .allowed = "a time for each token, such as 2 us",
       .examples = {"2 us", "50 us"},
       .help = "makes data_file dearer to prepare: time of one core that a worker adds for each token, as "
               "tokenization or decompression would",
       .parse = parse_loader_cost,
       .print = [](const Settings& s) { return print_seconds_exact(s.loader_cost_s); },
       .acts_on = {Part::loading},
       .fastest = "0 s",
       .without_effect = without_file},
  };
}

// ---- Document lengths, and how documents fill a batch.

std::vector<std::int64_t> read_document_lengths(const std::string& path) {
  constexpr std::size_t most_bytes = std::size_t{64} << 20;
  const std::string text = harness::read_file(path, most_bytes);
  std::vector<std::int64_t> lengths;
  std::size_t line = 1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \t\r\n,", at), text.size());
    if (end > at) {
      const std::string word = text.substr(at, end - at);
      const auto length = number_in<std::int64_t>(word);
      if (!length || *length < 1 || *length > longest_document)
        fail("{}, line {}: found {}; a length is a whole number from 1", path, line, quote(word));
      lengths.push_back(*length);
    }
    if (end < text.size() && text[end] == '\n') ++line;
    at = end + 1;
  }
  if (lengths.empty()) fail("{} has no lengths in it", path);
  return lengths;
}

std::vector<Variable> sequence_variables() {
  return {
      {.name = "sequences",
       .allowed = "full, {distribution: lognormal, median: N, sigma: X}, {distribution: uniform, min: N, max: N} or "
                  "{distribution: file, file: PATH}",
       .choices = {{"full"}},
       .examples = {"{distribution: lognormal, median: 512, sigma: 1}", "{distribution: uniform, min: 1, max: 1024}"},
       .help =
           "how long documents are, in tokens: as long as a sequence, or shorter; of a file, whose lengths are drawn "
           "at random, every node needs a copy",
       .parts = sequence_parts,
       .parse = parse_sequences,
       .print = print_sequences,
       .mathematics = Mathematics::another,
       .refused_by = refused_sequences,
       .conflict = conflict_with_context},
      one_of(
          &Settings::batching, batching_choices,
          {.name = "batching",
           .help = "documents shorter than a sequence have a row each, with padding behind them, or are packed "
                   "several to a row, where each sees itself alone; fused attention to them needs a GPU of "
                   "compute capability 9 or 10",
           .acts_on = {Part::matrix_products, Part::attention, Part::other_compute, Part::tensor, Part::pipeline,
                       Part::data, Part::embedding, Part::world},
           .fastest = "packed",
           .mathematics = Mathematics::another,
           .without_effect = only_with(&Settings::has_documents, true, "sequences is full, so there is no padding")}),
  };
}

}  // namespace harness::config
