#pragma once

#include <string>
#include <vector>

#include "evidence/answer.h"

namespace harness::test {

/// Lists what an answer lacks of the expectations in a `.expect` file: lines of `key: value`. A number must be right to
/// the digits that are written, a text must have the expected words in their order. Of `headline`, `problem`, `cannot`
/// and `refuse` each word with a digit in it must be said somewhere in the answer; `note` is for people.
std::vector<std::string> missing(const std::string& expectations, const evidence::Answer& answer);

}  // namespace harness::test
