#pragma once

#include <string>

namespace harness::report {

std::string show_money(double amount, const std::string& currency);  // "12,345,678 USD"; with cents below 100
std::string show_tokens(double tokens);                              // "300 billion tokens"
std::string show_duration(double seconds);                           // "51.3 days"

}  // namespace harness::report
