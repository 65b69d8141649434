#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// The kind of value that a key of a configuration takes.
enum class Takes : std::uint8_t {
  value,
  list,
  map,          // of the keys that have this one before them
  map_or_maps,  // the same, or a list of such maps
  name_or_map,  // `model`
  values,       // a value per variable: `baseline`
  lists,        // a list of values per variable: `sweep`
  maps,         // a list of maps with a value per variable: `combine`
  named_maps,   // the same, each under a name: `ladder`
};

/// One key that a configuration may have, as its reader declares it.
struct Key {
  std::string name;           // dotted: "measure.rounds"
  std::string help = {};      // one line
  std::string allowed = {};   // for people: "1 to 10000"
  std::string fallback = {};  // what holds without it, for people; "" where nothing does
  bool required = false;
  Takes takes = Takes::value;
  Choices choices = {};
};

/// All keys of a configuration, in the order in which they are read; a map stands before what is in it. Variables are
/// not among them: they are in the registry.
std::vector<Key> keys();

}  // namespace harness::config
