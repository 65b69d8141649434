#include "cli/cost_options.h"

#include "base/error.h"

namespace harness::cli {
namespace {

std::optional<config::Cost> cost_of(const CostOptions& options, const store::Result& result) {
  auto cost = config::cost_of_text(result.config_text, result.overrides);
  if (options.per_gpu_hour.empty() && options.run_tokens.empty()) {
    if (cost && !options.currency.empty()) cost->currency = options.currency;
    return cost;
  }
  if (!cost && (options.per_gpu_hour.empty() || options.run_tokens.empty())) {
    fail("--cost and --run-tokens need each other: --cost 2.50 --run-tokens 300e9");
  }
  if (!cost) cost.emplace();
  const auto take = [](const char* option, const std::string& text, auto parse, double& into) {
    if (text.empty()) return;
    try {
      into = parse(text);
    } catch (const Error& error) {
      fail("{}: {}", option, error.what());
    }
  };
  take("--cost", options.per_gpu_hour, config::parse_price, cost->per_gpu_hour);
  take("--run-tokens", options.run_tokens, config::parse_tokens, cost->run_tokens);
  if (!options.currency.empty()) cost->currency = options.currency;
  return cost;
}

}  // namespace

std::optional<analysis::CostEstimate> cost_estimate(const CostOptions& options, const store::Result& result,
                                                    const analysis::Summary& summary) {
  const auto cost = cost_of(options, result);
  return cost ? analysis::estimate_cost(result, summary, *cost) : std::nullopt;
}

}  // namespace harness::cli
