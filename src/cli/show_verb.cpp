#include <map>
#include <ostream>

#include "analysis/analysis.h"
#include "analysis/cost.h"
#include "base/error.h"
#include "cli/verbs.h"
#include "report/breakdown_table.h"
#include "report/show.h"
#include "store/result_file.h"

namespace harness {
namespace {

// What the command line says of costs, over what the file's configuration says.
std::optional<Cost> cost_of(const ShowOptions& options, const Result& result) {
  auto cost = cost_of_text(result.config_text, result.overrides);
  if (options.cost.empty() && options.run_tokens.empty()) {
    if (cost && !options.currency.empty()) cost->currency = options.currency;
    return cost;
  }
  if (!cost && (options.cost.empty() || options.run_tokens.empty())) {
    fail("--cost and --run-tokens belong together: --cost 2.50 --run-tokens 300e9");
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
  take("--cost", options.cost, parse_price, cost->per_gpu_hour);
  take("--run-tokens", options.run_tokens, parse_tokens, cost->run_tokens);
  if (!options.currency.empty()) cost->currency = options.currency;
  return cost;
}

}  // namespace

int show(const ShowOptions& options, std::ostream& out) {
  static const std::map<std::string, Format> formats{
      {"text", Format::text}, {"md", Format::md}, {"csv", Format::csv}, {"json", Format::json}};
  const Format format = formats.at(options.format);
  if (options.breakdown && format != Format::text && format != Format::md) {
    fail("--breakdown prints text or md, not {}; the file itself holds the numbers (docs/file-format.md)",
         options.format);
  }
  const Result result = read_result(options.file, {.rank_seconds = options.breakdown, .timeline = options.breakdown});
  const IntervalKind interval = options.interval == "sign" ? IntervalKind::sign : IntervalKind::yuen;
  const Summary summary = summarise(result, {.interval = interval});
  const auto cost = cost_of(options, result);
  const auto estimate = cost ? estimate_cost(result, summary, *cost) : std::nullopt;
  out << show(result, summary, format, estimate);
  if (options.breakdown) {
    out << (format == Format::md ? breakdown_markdown(result, summary) : breakdown_text(result, summary));
  }
  return exit_code(summary);
}

}  // namespace harness
