#include "config/cost.h"

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "config/fields.h"
#include "config/files.h"
#include "config/sections.h"

namespace harness::config {

std::string parse_currency(std::string_view text) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  if (text.empty() || text.size() > 8 || text.find_first_not_of(letters) != std::string_view::npos) {
    fail("found {}; allowed: up to 8 letters, such as USD or EUR", quote(text));
  }
  return std::string(text);
}

double parse_price(std::string_view text) {
  return parse_if(text, parse_real, is_above_zero, "a price of a GPU for an hour above 0, such as 2.50");
}

double parse_tokens(std::string_view text) {
  return parse_if(text, parse_real, is_above_zero, "a number of tokens above 0, such as 300e9");
}

std::vector<Field> cost_fields(Cost& cost) {
  const auto price = [&](auto text) { cost.per_gpu_hour = parse_price(text); };
  const auto currency = [&](auto text) { cost.currency = parse_currency(text); };
  const auto tokens = [&](auto text) { cost.run_tokens = parse_tokens(text); };
  return {Field::scalar("per_gpu_hour", price, "price of a GPU for an hour", "a price such as 2.50").required(),
          Field::scalar("currency", currency, "what the price is in", "up to 8 letters, such as EUR", Cost().currency),
          Field::section("run",
                         {Field::scalar("tokens", tokens, "tokens of that run", "a number such as 300e9").required()},
                         "the training run that is planned")
              .required()};
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
    Cost cost;
    read_map(problems, *node, "cost", cost_fields(cost));
    return problems.empty() ? std::optional(cost) : std::nullopt;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace harness::config
