#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"

namespace harness::config {

// Words in configurations. This header does not need the YAML reader, so a backend can link without it.

/// Normalises a key for look-ups: lower case, no leading dashes, '_' for '-'.
std::string key_words(std::string_view key);
/// An answer, and the blank-separated words that lead to it.
struct Hint {
  std::string_view answer, names;
};
/// Returns the answer for a word; "" if no hint lists it.
std::string_view answer_of(std::span<const Hint> hints, std::string_view word);
/// Explains why a key or value, such as mixtures of experts, is not supported; "" if there is no explanation.
std::string nothing_like(std::string_view word);

/// Returns the index of `text` in `words`. Throws an Error that lists all words and the nearest, or nothing_like().
std::size_t word_index(std::string_view text, std::span<const std::string> words);

/// Returns the text that `of`, a member or a function, gives for each element.
template <class Range, class Of>
std::vector<std::string> texts_of_all(const Range& range, Of of) {
  std::vector<std::string> texts;
  for (const auto& element : range) texts.emplace_back(std::invoke(of, element));
  return texts;
}

/// One option: the word in a configuration and the value it stands for.
template <class T>
using Choice = std::pair<const char*, T>;

template <class T, std::size_t n>
std::vector<std::string> words_of(const std::array<Choice<T>, n>& choices) {
  return texts_of_all(choices, &Choice<T>::first);
}

/// The values that are words: fp32 and bf16, or "auto" beside numbers.
struct Choices {
  std::vector<std::string> words = {};
  bool all = false;  // nothing else is allowed
};

/// The words of a boolean.
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
  fail("a value has no word among {}", join(words_of(choices), ", "));
}

/// The kind of value that a key of a configuration takes.
enum class Takes : std::uint8_t {
  value,
  list,
  map,          // of the keys prefixed with this one
  map_or_maps,  // such a map, or a list of them
  name_or_map,  // `model`
  values,       // a value per variable: `baseline`
  lists,        // a list of values per variable: `sweep`
  maps,         // a list of maps with a value per variable: `combine`
  named_maps,   // a list of such maps, each under a name: `ladder`
};

/// One key that a configuration may have, as its reader declares it.
struct Key {
  std::string name;           // dotted: "measure.rounds"
  std::string help = {};      // one line
  std::string allowed = {};   // as shown to users: "1 to 10000"
  std::string fallback = {};  // the default, as shown to users; "": none
  bool required = false;
  Takes takes = Takes::value;
  Choices choices = {};
};

/// Returns all keys of a configuration in reading order, a map before its members. Excludes variables, which are in the
/// registry.
std::vector<Key> keys();

}  // namespace harness::config
