#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text.h"
#include "evidence/answer.h"
#include "support/files.h"
#include "support/paths.h"

namespace harness::test {

/// Lists what an answer lacks of the expectations in a `.expect` file: lines of `key: value`. A number must be right to
/// the digits given, and a text must contain the expected words in order. For `headline`, `problem`, `cannot` and
/// `refuse`, every word with a digit must occur somewhere in the answer; `note` is for people.
std::string lacking(const std::string& expectations, const evidence::Answer& answer);

/// Returns a fact as text; "" if there is none.
std::string fact(const evidence::Answer& answer, const std::string& key);

/// A variation between versions of frameworks and libraries, in one line or key.
struct Quirk {
  std::string text, expected, file = "text";
};

/// Reads a text as a file of this name.
inline evidence::Answer answer_to(const std::string& text, const std::string& file = "text",
                                  const evidence::Gaps& gaps = {}) {
  static const TemporaryFolder scratch;
  return evidence::read_files({scratch.write(file, text)}, gaps).front();
}

/// Reads texts together, as files of these names.
inline std::vector<evidence::Answer> answers_to(const NameValues& files) {
  const TemporaryFolder scratch;
  std::vector<std::string> paths;
  for (const auto& [name, text] : files) paths.push_back(scratch.write(name, text));
  return evidence::read_files(paths, {});
}

inline void expect_answers(const std::vector<Quirk>& quirks) {
  for (const Quirk& quirk : quirks)
    EXPECT_EQ(lacking(quirk.expected, answer_to(quirk.text, quirk.file)), "") << quirk.text;
}

inline std::string headline_of(const std::string& text) {
  return answer_to(text).headline;
}

/// Returns the path of a sample.
inline std::string sample_file(const std::string& name) {
  return source_dir() + "/tests/evidence/samples/" + name;
}

}  // namespace harness::test
