#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text.h"
#include "evidence/answer.h"
#include "support/files.h"

namespace harness::test {

/// Lists what an answer lacks of the expectations in a `.expect` file: lines of `key: value`. A number must be right to
/// the digits given, and a text must contain the expected words in order. For `headline`, `problem`, `cannot` and
/// `refuse`, every word with a digit must occur somewhere in the answer; `note` is for people.
std::vector<std::string> missing(const std::string& expectations, const evidence::Answer& answer);

/// A variation between versions of frameworks and libraries, in one line or key.
struct Quirk {
  std::string file, text, expected;
};

inline void expect_answers(const std::vector<Quirk>& quirks) {
  const TemporaryFolder scratch;
  for (const Quirk& quirk : quirks) {
    const std::vector<evidence::Answer> answers = evidence::read_files({scratch.write(quirk.file, quirk.text)}, {});
    EXPECT_EQ(join(missing(quirk.expected, answers.front()), "\n"), "") << quirk.text;
  }
}

/// Returns the headline of the answer for one file.
inline std::string headline_of(const std::string& file, const std::string& text) {
  const TemporaryFolder scratch;
  return evidence::read_files({scratch.write(file, text)}, {}).front().headline;
}

}  // namespace harness::test
