#include "evidence/expectations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "evidence/input.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/paths.h"

namespace harness::test {
namespace {

// Splits words and strips the punctuation around them.
std::vector<std::string> bare_words(std::string_view text) {
  std::vector<std::string> words;
  for (std::string_view word : evidence::words_of(text, 1000)) {
    const auto odd = [](char c) { return std::string_view(",;:().\"").find(c) != std::string_view::npos; };
    while (!word.empty() && odd(word.front())) word.remove_prefix(1);
    while (!word.empty() && odd(word.back())) word.remove_suffix(1);
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

std::string text_of_value(const evidence::Value& value) {
  if (value.is_array()) return "";  // by size, by iteration
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool same_number(const std::string& expected, const std::string& found) {
  const auto a = evidence::as_number(expected), b = evidence::as_number(found);
  if (!a || !b) return false;
  const std::size_t point = expected.find('.');
  const auto digits = point == std::string::npos ? 0 : static_cast<int>(expected.size() - point - 1);
  return std::abs(*a - *b) <= 0.501 * std::pow(10, -digits);
}

bool has_words(const std::string& expected, const std::string& found) {
  const std::vector<std::string> words = bare_words(found);
  auto at = words.begin();
  for (const std::string& word : bare_words(expected)) {
    at = std::find_if(at, words.end(), [&](const std::string& w) { return w == word || same_number(word, w); });
    if (at == words.end()) return false;
    ++at;
  }
  return true;
}

namespace fs = std::filesystem;

std::vector<fs::path> samples_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (fs::exists(entry.path().string() + ".expect")) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

void expect_answers(const fs::path& folder) {
  const std::vector<fs::path> samples = samples_in(folder);
  ASSERT_FALSE(samples.empty()) << folder;
  for (const fs::path& sample : samples) {
    const std::string expected = text_of(sample.string() + ".expect");
    std::vector<evidence::Answer> answers;
    const std::string error = error_of([&] { answers = evidence::read_files({sample.string()}, {}); });
    if (error.find("built without zlib") != std::string::npos) continue;
    EXPECT_EQ(error.substr(0, 200), "") << sample.filename();
    if (answers.empty()) continue;
    EXPECT_EQ(lacking(expected, answers.front()), "") << sample.filename();
    EXPECT_FALSE(answers.front().headline.empty());
    EXPECT_LE(answers.front().evidence.size(), 12u) << sample.filename();
  }
}

TEST(Samples, EachGivesItsExpectedAnswer) {
  expect_answers(fs::path(source_dir()) / "tests/evidence/samples");
}

// Checks another folder of samples in the same format: HARNESS_EVIDENCE_SAMPLES=FOLDER.
TEST(Samples, AnotherFolderToo) {
  const char* folder = std::getenv("HARNESS_EVIDENCE_SAMPLES");
  if (folder == nullptr) GTEST_SKIP() << "HARNESS_EVIDENCE_SAMPLES is not set";
  expect_answers(folder);
}

}  // namespace

std::string fact(const evidence::Answer& answer, const std::string& key) {
  const auto found = std::ranges::find(answer.facts, key, [](const auto& row) { return row.first; });
  return found == answer.facts.end() ? "" : text_of_value(found->second);
}

std::string lacking(const std::string& expectations, const evidence::Answer& answer) {
  std::vector<std::string> lacks;
  std::string said = answer.headline;
  for (const std::string& text : answer.problems) said += " " + text;
  for (const std::string& text : answer.notes) said += " " + text;
  for (const auto& [key, value] : answer.facts) said += " " + text_of_value(value);
  for (const auto& [label, text] : answer.evidence) said += " " + text;
  for (const auto& list : {answer.cannot, answer.refused}) {
    for (const std::string& text : list) said += " " + text;
  }
  const std::vector<std::string> words = bare_words(said);
  for (const std::string& line : split_text(expectations, "\n")) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, colon), value = line.substr(colon + 2);
    if (key == "note") continue;
    if (key == "cannot" || key == "headline" || key == "problem" || key == "refuse") {
      for (const std::string& word : bare_words(value)) {
        const auto fits = [&](const std::string& w) { return w == word || same_number(word, w); };
        if (word.find_first_of("0123456789") != std::string::npos && std::ranges::none_of(words, fits))
          lacks.push_back(fmt::format("{}: nothing says {}; headline: {}", key, word, answer.headline));
      }
      continue;
    }
    const std::string found = fact(answer, key);
    if (found != value && !same_number(value, found) && !has_words(value, found))
      lacks.push_back(fmt::format("{}: expected {}, found {}", key, value, found.empty() ? "nothing" : found));
  }
  return join(lacks, "\n");
}

}  // namespace harness::test
