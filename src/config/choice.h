#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/missing.h"

namespace harness::config {

/// One element of a choice: the word a person writes and the value it stands for.
template <class T>
using Choice = std::pair<const char*, T>;

template <class T, std::size_t n>
std::vector<std::string> words_of(const std::array<Choice<T>, n>& choices) {
  std::vector<std::string> words;
  words.reserve(n);
  for (const auto& choice : choices) words.emplace_back(choice.first);
  return words;
}

/// The words of what is on or off.
inline const std::vector<std::string> true_false{"true", "false"};

template <class T, std::size_t n>
T parse_choice(std::string_view text, const std::array<Choice<T>, n>& choices) {
  for (const auto& choice : choices) {
    if (text == choice.first) return choice.second;
  }
  if (const std::string why = nothing_like(text); !why.empty()) fail("found {}; {}", quote(text), why);
  const auto words = words_of(choices);
  fail("found {}; allowed: {}{}", quote(text), join(words, ", "), did_you_mean(nearest(text, words)));
}

template <class T, std::size_t n>
const char* word_of(T value, const std::array<Choice<T>, n>& choices) {
  for (const auto& choice : choices) {
    if (value == choice.second) return choice.first;
  }
  fail("value {} has no word among {}", static_cast<int>(value), join(words_of(choices), ", "));
}

template <class T, std::size_t n>
std::string print_choice(T value, const std::array<Choice<T>, n>& choices) {
  return word_of(value, choices);
}

}  // namespace harness::config
