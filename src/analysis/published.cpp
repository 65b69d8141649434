#include "analysis/published.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "base/median.h"
#include "base/text.h"
#include "config/experiment.h"
#include "config/files.h"

namespace harness::analysis {
namespace {

using Row = config::PublishedRow;

// Returns nothing if the program's folder of facts is missing.
std::vector<Row> rows_of(const char* table) {
  const auto folder = config::shipped_configs("published"), file = folder / table;
  return folder.empty() || !std::filesystem::exists(file) ? std::vector<Row>() : config::read_published(file);
}

std::string word_in(const Row& row, std::string_view key) {
  const auto found = row.find(key);
  return found == row.end() ? "" : found->second;
}
double real_in(const Row& row, std::string_view key) {
  return number_in<double>(word_in(row, key)).value_or(0);
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
  if (word_in(row, "activation") == "swiglu") model.activation = config::Activation::swiglu;
  return model;
}

// Returns the project of a source such as "llm-foundry scripts/train/benchmarking", the word before the path.
std::string project_of(const Row& row) {
  const std::string source = word_in(row, "source");
  return source.substr(0, source.find(' '));
}

struct Near {
  double distance = 0;
  const Row* row = nullptr;
};

std::string beside_median(const StepOfJob& yours, double median, double highest) {
  const double share = yours.tflops / median;
  if (yours.tflops > 1.05 * highest) {
    return fmt::format("above all of them: {}", yours.predicted ? "nobody is known to reach it"
                                                                : "check tokens, time and what counts as a step");
  }
  if (share >= 0.97) return "like the published runs";
  return fmt::format("{:.0f} % of their median: {}", 100 * share, share >= 0.85 ? "a little below" : "below");
}

// Describes the nearest step, and how it differs.
std::string nearest_in_words(const Row& row, const StepOfJob& step, double flop) {
  const auto beside = [](std::int64_t theirs, std::int64_t yours) {
    return theirs == yours ? std::to_string(theirs) : fmt::format("{} (yours: {})", theirs, yours);
  };
  return fmt::format(
      "{} on {} GPUs, sequences of {}, {:.2g} times the FLOP per token, TP {} PP {} CP {}, micro {}, "
      "{:.0f} TFLOP/s, {} ({}, {})",
      word_in(row, "model"), beside(count_in(row, "gpus"), step.gpus),
      beside(count_in(row, "sequence"), step.model.sequence), flop, word_in(row, "tensor_parallel"),
      word_in(row, "pipeline_parallel"), word_in(row, "context_parallel"), word_in(row, "micro_batch_size"),
      real_in(row, "tflops_causal"), word_in(row, "tuned"), project_of(row), word_in(row, "date"));
}

std::string runs_and_sources(const std::vector<Near>& rows) {
  std::set<std::string> sources;
  for (const Near& near : rows) sources.insert(project_of(*near.row));
  return fmt::format("{}, {}", plural(std::ssize(rows), "run"), plural(std::ssize(sources), "source"));
}

}  // namespace

// Forward and backward: 2 FLOP per weight of a matrix product in each of three passes (counting the head but not the
// embedding look-up), plus scores and values of attention, with causal counting half the square as in docs/method.md.
std::optional<ModelFlop> flop_per_token(const config::Model& model) {
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  if (model.layers <= 0 || model.hidden <= 0 || model.heads <= 0 || model.vocab <= 0) return std::nullopt;
  const double layers = real(model.layers), hidden = real(model.hidden), table = hidden * real(model.vocab);
  const double attention = 2 * hidden * hidden * (1 + real(model.key_heads()) / real(model.heads));
  const double mlp = hidden * (real(model.fc1_outputs()) + real(model.mlp_width()));
  const double weights = layers * (attention + mlp) + table;
  const double scores = layers * hidden * real(model.sequence);
  return ModelFlop{6 * weights + 6 * scores, 6 * weights + 12 * scores, weights + (model.tied_embeddings ? 0 : table)};
}

PublishedSteps published_steps(const StepOfJob& step) {
  const auto flop = flop_per_token(step.model);
  if (!flop || step.model.sequence <= 0 || step.gpu.empty() || step.gpus <= 0) return {};
  static const std::vector<Row> rows = rows_of("steps.csv");
  if (rows.empty()) return {};
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
    return {0, fmt::format("nobody in configs/published has {} in {}; `harness plan` predicts it",
                           gpu_known ? "a step like this" : "this GPU", step.precision)};
  std::vector<double> rates;
  for (const Near& row : near) rates.push_back(real_in(*row.row, "tflops_causal"));
  const auto [lowest, highest] = std::ranges::minmax(rates);
  const double middle = median(rates);
  std::vector<std::string> words{fmt::format("{:.0f} to {:.0f} TFLOP/s per GPU, median {:.0f} ({}; {})", lowest,
                                             highest, middle, runs_and_sources(near),
                                             alike ? "like this step" : "of the kind")};
  if (step.tflops > 0)
    words.push_back(fmt::format(
        "yours{}: {:.0f}, {}", step.predicted ? ", predicted" : "", step.tflops,
        std::ssize(near) < few ? "and they are too few for a verdict" : beside_median(step, middle, highest)));
  const Row& first = *near.front().row;
  const double times = flop_per_token(model_of_row(first))->causal / flop->causal;
  words.push_back("nearest: " + nearest_in_words(first, step, times));
  return {std::ssize(near), join(words, "; ")};
}

std::string published_line(const StepOfJob& step) {
  const PublishedSteps published = published_steps(step);
  if (published.near == 0) return "";
  return fmt::format("published for {} in {}: {}", step.gpu, step.precision, published.text);
}

std::string published_line(const store::Result& result, const Summary& summary) {
  const store::ResultCase* baseline = result.baseline();
  if (baseline == nullptr || !result.points.empty() || !result.ranks_are_gpus()) return "";
  const auto row = std::ranges::find(summary.cases, store::CaseRole::baseline, &CaseSummary::role);
  if (row == summary.cases.end() || row->blocks == 0 || !std::isfinite(row->flops_per_rank)) return "";
  try {
    std::optional<config::Hardware> hardware =
        config::load_experiment(result.config_path, result.overrides, result.config_text).hardware;
    if (!hardware && !result.rank_table.empty())
      hardware = config::find_hardware_for_device(result.rank_table.front().device, result.config_path);
    if (!hardware) return "";
    return published_line({result.model, hardware->gpu_file(), std::string(result.setting(*baseline, "precision")),
                           baseline->ranks, row->flops_per_rank / 1e12, summary.predicted});
  } catch (const Error&) {  // the configuration is from another version, or a hardware file is missing
    return "";
  }
}

std::string published_busbw(const std::string& gpu, std::int64_t nodes, const std::string& collective,
                            std::int64_t bytes, double busbw) {
  constexpr double gib = 1024.0 * 1024 * 1024, giga = 1e9;
  const double size = static_cast<double>(bytes) / gib;
  if (size < 1 || nodes < 1) return "";
  static const std::vector<Row> rows = rows_of("busbw.csv");
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

}  // namespace harness::analysis
