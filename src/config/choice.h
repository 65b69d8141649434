#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace harness::config {

// Words that people write. Nothing here needs the reader of YAML, so that a backend can be linked without it.

/// A key as people look it up: in lower case, without leading dashes, _ for -.
std::string key_words(std::string_view key);
/// An answer, and the words for which people get it, with blanks between them.
struct Hint {
  std::string_view answer, names;
};
/// "" for a word that is none of these.
std::string_view answer_of(std::span<const Hint> hints, std::string_view word);
/// Why there is nothing like this key or value here, such as experts or fp8; "" for what is not known to be missing.
std::string nothing_like(std::string_view word);

/// The place of `text` among `words`. Throws Error that names all of them and the nearest.
std::size_t word_index(std::string_view text, std::span<const std::string> words);

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

/// The values that are words: fp32 and bf16, or "auto" beside numbers.
struct Choices {
  std::vector<std::string> words = {};
  bool all = false;  // nothing else is allowed
};

/// The words of what is on or off.
inline const std::vector<std::string> true_false{"true", "false"};

template <class T, std::size_t n>
T parse_choice(std::string_view text, const std::array<Choice<T>, n>& choices) {
  return choices[word_index(text, words_of(choices))].second;
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
