#include "config/cost.h"

#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "config/fields.h"
#include "config/overrides.h"
#include "config/sections.h"
#include "config/text_file.h"

namespace harness::config {
namespace {

double above_zero(std::string_view text, const char* what) {
  const double value = parse_real(text);
  if (!std::isfinite(value) || !(value > 0)) fail("found {}; allowed: {}", quote(text), what);
  return value;
}

std::string parse_currency(std::string_view text) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  if (text.empty() || text.size() > 8 || text.find_first_not_of(letters) != std::string_view::npos) {
    fail("found {}; allowed: up to 8 letters, such as USD or EUR", quote(text));
  }
  return std::string(text);
}

}  // namespace

double parse_price(std::string_view text) {
  return above_zero(text, "a price of a GPU for an hour above 0, such as 2.50");
}

double parse_tokens(std::string_view text) {
  return above_zero(text, "a number of tokens above 0, such as 300e9");
}

std::optional<Cost> read_cost(const YamlNode& node, const std::string& key, Problems& problems) {
  Cost cost;
  const auto run = [&](const YamlNode& value, const std::string& path) {
    const std::array<Field, 1> fields{{{.key = "tokens",
                                        .parse = [&](auto text) { cost.run_tokens = parse_tokens(text); },
                                        .required = true,
                                        .help = "tokens of that run",
                                        .allowed = "a number such as 300e9"}}};
    read_map(problems, value, path, fields);
  };
  const std::array<Field, 3> fields{
      {{.key = "per_gpu_hour",
        .parse = [&](auto text) { cost.per_gpu_hour = parse_price(text); },
        .required = true,
        .help = "price of a GPU for an hour",
        .allowed = "a price such as 2.50"},
       {.key = "currency",
        .parse = [&](auto text) { cost.currency = parse_currency(text); },
        .help = "what the price is in",
        .allowed = "up to 8 letters, such as EUR",
        .fallback = Cost().currency},
       {.key = "run", .parse = {}, .read = run, .required = true, .help = "the training run that is planned"}}};
  if (!read_map(problems, node, key, fields) || !(cost.per_gpu_hour > 0) || !(cost.run_tokens > 0)) return {};
  return cost;
}

std::optional<Cost> cost_of_text(const std::string& text, std::span<const std::string> overrides) {
  try {
    Problems problems;
    const int source = problems.add_file("configuration");
    if (!check_text(text, source, problems)) return {};
    auto root = parse_yaml(text, source, problems);
    if (!root || root->kind != YamlNode::Kind::map) return {};
    apply_overrides(*root, overrides, problems);
    const YamlNode* node = root->find("cost");
    if (node == nullptr || !problems.empty()) return {};
    const auto cost = read_cost(*node, "cost", problems);
    return problems.empty() ? cost : std::nullopt;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace harness::config
