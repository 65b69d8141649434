// Rows of the training data, and of how a rank loads it.
#include <algorithm>

#include "base/units.h"
#include "config/registry_rows.h"

namespace harness::config {
namespace {

constexpr std::string_view synthetic = "synthetic", unlimited = "none";
constexpr int max_loader_threads = 256, max_ring = 4096;

// The path stands in lists and maps of a configuration, in names of cases and in tables.
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
             .allowed = fmt::format("0 to {}", max_loader_threads),
             .examples = {"0", "8"},
             .help = "threads of a rank that load a batch of data_file each, ahead of the step; 0: the step loads its "
                     "own (PyTorch's num_workers). On cpu, auto leaves them as many fewer compute threads",
             .acts_on = {Part::loading},
             .without_effect = without_file}),
      whole(&Settings::loader_prefetch, 1, max_ring,
            {.name = "loader_prefetch",
             .allowed = fmt::format("1 to {}", max_ring),
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

}  // namespace harness::config
