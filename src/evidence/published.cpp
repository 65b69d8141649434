#include "evidence/published.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/median.h"
#include "config/files.h"
#include "evidence/lines.h"
#include "evidence/training_job.h"

namespace harness::evidence {
namespace {

using Row = std::map<std::string, std::string, std::less<>>;

// The parts of a line of CSV; quotes hide commas.
std::vector<std::string> parts_of_row(std::string_view line) {
  std::vector<std::string> parts(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::vector<Row> rows_of(const char* table) {
  constexpr std::size_t most = 4u << 20;
  const auto folder = config::shipped_configs();
  if (folder.empty()) return {};
  const FileText file = try_read_file((folder / "published" / table).string(), most);
  if (!file) return {};
  std::vector<Row> rows;
  std::vector<std::string> heading;
  for (std::string_view line : split(file.text, '\n')) {
    const std::vector<std::string> parts = parts_of_row(line);
    if (heading.empty()) {
      heading = parts;
    } else if (parts.size() == heading.size()) {
      Row& row = rows.emplace_back();
      for (std::size_t i = 0; i < parts.size(); ++i) row[heading[i]] = parts[i];
    }
  }
  return rows;
}

double real_in(const Row& row, std::string_view key) {
  const auto found = row.find(key);
  return found == row.end() ? 0 : as_number(found->second).value_or(0);
}
std::string word_in(const Row& row, std::string_view key) {
  const auto found = row.find(key);
  return found == row.end() ? "" : found->second;
}
std::int64_t count_in(const Row& row, std::string_view key) {
  return static_cast<std::int64_t>(real_in(row, key));
}

config::Model model_of_row(const Row& row) {
  config::Model model{.name = "",
                      .layers = count_in(row, "layers"),
                      .hidden = count_in(row, "hidden"),
                      .heads = count_in(row, "heads"),
                      .vocab = count_in(row, "vocab"),
                      .sequence = count_in(row, "sequence"),
                      .kv_heads = count_in(row, "kv_heads"),
                      .ffn = count_in(row, "ffn")};
  if (real_in(row, "gated") > 0) model.activation = config::Activation::swiglu;
  return model;
}

// "llm-foundry scripts/train/benchmarking": what stands before a file's place.
std::string project_of(const Row& row) {
  const std::string source = word_in(row, "source");
  return source.substr(0, source.find(' '));
}

struct Near {
  double distance = 0;
  const Row* row = nullptr;
};

// "at or above the median" and the like, without saying what should be.
std::string beside_median(double yours, double median, double highest) {
  const double share = yours / median;
  if (yours > 1.05 * highest) return "above all of them: check tokens, time and what counts as a step";
  if (share >= 0.97) return "like the published runs";
  return fmt::format("{:.0f} % of their median: {}", 100 * share, share >= 0.85 ? "a little below" : "below");
}

std::string runs_and_sources(const std::vector<Near>& rows) {
  std::set<std::string> sources;
  for (const Near& near : rows) sources.insert(project_of(*near.row));
  return fmt::format("{}, {}", plural(std::ssize(rows), "run"),
                     sources.size() == 1 ? "one source" : plural(std::ssize(sources), "source"));
}

}  // namespace

std::optional<config::Hardware> hardware_of(const std::string& gpu, const Gaps& gaps) {
  if (!gaps.hardware.empty()) return config::hardware_named(gaps.hardware);
  if (gpu.empty() || gpu.starts_with("AMD")) return std::nullopt;
  try {
    return config::find_hardware_for_device("NVIDIA " + gpu, "");
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string published_steps(const StepOfJob& step) {
  const auto flop = flop_per_token(step.model);
  if (!flop || step.model.sequence <= 0 || step.gpu.empty() || step.gpus <= 0) return "";
  const std::vector<Row> rows = rows_of("steps.csv");
  if (rows.empty()) return "";
  std::vector<Near> near;
  bool gpu_known = false;
  for (const Row& row : rows) {
    if (word_in(row, "gpu") != step.gpu) continue;
    gpu_known = true;
    const auto other = flop_per_token(model_of_row(row));
    if (!other || word_in(row, "precision") != step.precision || real_in(row, "tflops_causal") <= 0) continue;
    const double distance =
        std::abs(std::log2(other->causal / flop->causal)) +
        0.5 * std::abs(std::log2(real_in(row, "sequence") / static_cast<double>(step.model.sequence))) +
        0.25 * std::abs(std::log2(real_in(row, "gpus") / static_cast<double>(step.gpus)));
    near.push_back({distance, &row});
  }
  std::ranges::sort(near, {}, &Near::distance);
  const auto within = [&](double most) {
    return std::ranges::count_if(near, [&](const Near& row) { return row.distance <= most; });
  };
  constexpr std::int64_t few = 3;
  const bool alike = within(1) >= few;
  near.resize(static_cast<std::size_t>(alike ? within(1) : within(2)));
  if (near.empty())
    return fmt::format("nobody in configs/published has {} in {}; `harness plan` predicts it",
                       gpu_known ? "a step like this" : "this GPU", step.precision);
  std::vector<double> rates;
  for (const Near& row : near) rates.push_back(real_in(*row.row, "tflops_causal"));
  const auto [lowest, highest] = std::ranges::minmax(rates);
  const double middle = median(rates);
  const Row& first = *near.front().row;
  std::string text = fmt::format("{:.0f} to {:.0f} TFLOP/s per GPU, median {:.0f} ({}; {})", lowest, highest, middle,
                                 runs_and_sources(near), alike ? "like this step" : "of the kind");
  if (step.tflops > 0 && std::ssize(near) >= few)
    text += fmt::format("; yours is {}", beside_median(step.tflops, middle, highest));
  if (step.tflops > 0 && std::ssize(near) < few) text += "; too few for a verdict";
  text += fmt::format("; nearest: {} on {}, TP {} PP {} CP {}, micro {}, {:.0f} TFLOP/s, {} ({}, {})",
                      word_in(first, "model"), word_in(first, "gpus"), word_in(first, "tp"), word_in(first, "pp"),
                      word_in(first, "cp"), word_in(first, "micro"), real_in(first, "tflops_causal"),
                      word_in(first, "tuned"), project_of(first), word_in(first, "date"));
  return text;
}

std::string published_busbw(const std::string& gpu, std::int64_t nodes, const std::string& collective,
                            std::int64_t bytes, double busbw) {
  constexpr double gib = 1024.0 * 1024 * 1024, giga = 1e9;
  const double size = static_cast<double>(bytes) / gib;
  if (size < 1 || nodes < 1) return "";
  const std::vector<Row> rows = rows_of("busbw.csv");
  std::vector<Near> near;
  for (const Row& row : rows) {
    const double theirs = real_in(row, "nodes"), ratio = theirs / static_cast<double>(nodes);
    const double of_size = real_in(row, "size_gib") / size;
    const bool inside = nodes == 1 || theirs == 1;
    const bool fits = word_in(row, "gpu") == gpu && word_in(row, "collective") == collective &&
                      (inside ? ratio == 1 : ratio >= 0.5 && ratio <= 2) && of_size >= 0.5 && of_size <= 2;
    if (fits) near.push_back({std::abs(std::log2(ratio)) + std::abs(std::log2(of_size)), &row});
  }
  if (near.empty()) return "";
  std::ranges::sort(near, {}, &Near::distance);
  const Row& first = *near.front().row;
  std::vector<double> rates;
  for (const Near& row : near) rates.push_back(real_in(*row.row, "busbw_gb_s"));
  const auto [lowest, highest] = std::ranges::minmax(rates);
  return fmt::format("{:.0f} to {:.0f} GB/s ({}); nearest: {:.0f} GB/s, {} {} on {}, {} ({}); yours is {:.0f} % of it",
                     lowest, highest, runs_and_sources(near), real_in(first, "busbw_gb_s"), word_in(first, "algorithm"),
                     plural(count_in(first, "nodes"), "node"), word_in(first, "network"),
                     word_in(first, "nccl").empty() ? "NCCL not said" : "NCCL " + word_in(first, "nccl"),
                     project_of(first), 100 * busbw / (real_in(first, "busbw_gb_s") * giga));
}

}  // namespace harness::evidence
