#pragma once

#include <string>
#include <vector>

#include "evidence/answer.h"

namespace harness::test {

/// Lists the expectations of a `.expect` file that an answer misses. Lines are `key: value`. A number must match to the
/// digits written; a text must contain the expected words in order. For `headline`, `problem`, `cannot` and `refuse`,
/// each word with a digit must appear somewhere in the answer. `note` is ignored.
std::vector<std::string> missing(const std::string& expectations, const evidence::Answer& answer);

}  // namespace harness::test
