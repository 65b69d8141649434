#pragma once

#include <string>
#include <vector>

#include "evidence/answer.h"

namespace harness::test {

/// Lists what an answer lacks of the expectations in a `.expect` file: lines of `key: value`. A number must be right to
/// the digits given, and a text must contain the expected words in order. For `headline`, `problem`, `cannot` and
/// `refuse`, every word with a digit must occur somewhere in the answer; `note` is for people.
std::vector<std::string> missing(const std::string& expectations, const evidence::Answer& answer);

}  // namespace harness::test
