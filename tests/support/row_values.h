#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"
#include "config/registry.h"

namespace harness::test {

/// Returns the value that a row prints after parsing `text`; "" if it refuses the text.
inline std::string printed(const config::Variable& row, const std::string& text) {
  config::Settings settings;
  try {
    row.parse(settings, text);
  } catch (const Error&) {
    return "";
  }
  return row.print(settings);
}

/// Returns the words in the text about the values that a row allows.
inline std::vector<std::string> words_of_allowed(const config::Variable& row) {
  std::vector<std::string> words(1);
  for (const char c : row.allowed) {
    const bool belongs = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
    if (belongs) words.back() += c;
    if (!belongs && !words.back().empty()) words.emplace_back();
  }
  return words;
}

/// Returns values of a row as it prints them, each once and without the default: those of the words that it allows, and
/// of usual words, numbers and sizes, that it accepts. A new row needs no entry here unless it accepts none of them.
inline std::vector<std::string> values_of(const config::Variable& row) {
  std::vector<std::string> offered = words_of_allowed(row);
  for (const char* usual : {"true", "false", "0", "2", "1", "3", "4", "50 %", "64 KiB", "1 GiB", "1 KiB", "5 MB/s"}) {
    offered.emplace_back(usual);
  }
  if (!row.parts.empty()) {
    std::vector<std::string> whole;
    const std::vector<std::string> words = offered;
    const auto first_that_fits = [&](const std::string& part) {
      for (const char* number : {"2", "true"}) {
        if (!printed(row, "{" + part + ": " + number + "}").empty()) return part + ": " + number;
      }
      return std::string();
    };
    std::vector<std::string> all;
    for (const std::string& part : row.parts) {
      for (const std::string& word : words) whole.push_back("{" + part + ": " + word + "}");
      if (const std::string fits = first_that_fits(part); !fits.empty()) all.push_back(fits);
    }
    whole.push_back("{" + join(all, ", ") + "}");
    offered = whole;
  }
  std::vector<std::string> values;
  const std::string usual = row.print(config::Settings());
  for (const std::string& text : offered) {
    const std::string value = printed(row, text);
    if (value.empty() || value == usual || std::ranges::find(values, value) != values.end()) continue;
    values.push_back(value);
  }
  return values;
}

/// Returns a text that a user might write as a value of the row: a number of up to seventeen digits with or without a
/// unit, an allowed word, a list of these, and for a compound row a map. The row refuses most of them.
inline std::string random_text(const config::Variable& row, std::mt19937_64& random) {
  const std::vector<std::string> words = words_of_allowed(row);
  const auto one_of = [&](const auto& list) { return list[random() % std::size(list)]; };
  const auto number = [&] {
    std::string text;
    const auto digits = random() % 17;
    for (std::uint64_t i = 0; i <= digits; ++i) {
      if (i > 0 && random() % 4 == 0 && text.find('.') == std::string::npos) text += '.';
      text += static_cast<char>('0' + random() % 10);
    }
    if (random() % 8 == 0) text += one_of(std::array{"e-1", "e-3", "e2"});
    return text;
  };
  const auto word = [&] {
    const std::array units{"", "", " %", "%", " B", " KiB", " MiB", " kB", " GB", " MB/s"};
    if (random() % 2 == 0) return one_of(words);
    const std::string unit = one_of(units);  // drawn first: compilers evaluate operands of + in any order
    return number() + unit;
  };
  const auto list = [&](const auto& item) {
    std::vector<std::string> items(1 + random() % 3);
    for (std::string& text : items) text = item();
    return join(items, ", ");
  };
  if (row.free_parts) return "{" + list([&] { return "N" + number() + ": \"" + word() + " {x}, \\\" y\""; }) + "}";
  if (row.parts.empty()) return random() % 4 == 0 ? list(word) : word();
  return "{" + list([&] {
           const std::uint64_t digits = 1 + random() % 5;
           const std::string value = random() % 4 == 0 ? word() : number().substr(0, digits);
           return one_of(row.parts) + ": " + value;
         }) +
         "}";
}

/// Sets the row to a random value: the first of 100 random texts that it accepts, else its default stays.
inline void set_at_random(const config::Variable& row, config::Settings& settings, std::mt19937_64& random) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    try {
      row.parse(settings, random_text(row, random));
      return;
    } catch (const Error&) {
      continue;
    }
  }
}

}  // namespace harness::test
