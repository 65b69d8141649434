#pragma once

#include <string>
#include <vector>

#include "analysis/comparison.h"
#include "analysis/reproduction.h"
#include "report/table.h"

namespace harness {

// The tables of `compare` and the sentences that go with them.

Table comparison_table(const Comparison& comparison);
/// Empty (no rows) where the files do not say what steps are made of.
Table parts_table(const Comparison& comparison);
/// What the numbers rest on and what they do not say, a paragraph each.
std::vector<std::string> comparison_notes(const Comparison& comparison);
/// "3 cases slower, 9 the same …" in one sentence.
std::string comparison_headline(const Comparison& comparison);

Table reproduction_table(const Reproduction& reproduction);
std::vector<std::string> reproduction_notes(const Reproduction& reproduction);
std::string reproduction_headline(const Reproduction& reproduction);

}  // namespace harness
