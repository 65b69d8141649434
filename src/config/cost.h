#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace harness::config {

/// The section `cost` of a configuration: what a GPU costs, and the training run that is planned. It changes nothing
/// that is measured; `show` and `report` turn measured token rates into durations and prices with it.
struct Cost {
  double per_gpu_hour = 0;
  std::string currency = "USD";
  double run_tokens = 0;
};

/// "2.50" or "300e9": above 0. Throw Error.
double parse_price(std::string_view text);
double parse_tokens(std::string_view text);
/// "EUR". Throws Error.
std::string parse_currency(std::string_view text);

/// The section `cost` of a configuration that is at hand as text, such as a result file's; nullopt if it has none or
/// cannot be read. Never throws.
std::optional<Cost> cost_of_text(const std::string& text, std::span<const std::string> overrides);

}  // namespace harness::config
