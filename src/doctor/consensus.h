#pragma once

#include <string>
#include <vector>

#include "doctor/check.h"

namespace harness::doctor {

/// How a node departs from the others.
struct Difference {
  std::string check;    // "same.driver"
  std::string told_by;  // the check that says it better where it says anything bad of the node; "": none
  std::string host;
  Finding finding;
};

/// Who differs from the majority, fact by fact, without any table of expected values. Where no value has more than half
/// of the nodes, every node is named with its own. A fact that a node could not read says nothing of it. Facts of
/// several devices are compared as what there is, so that numbering does not matter.
std::vector<Difference> differences(const std::vector<Node>& nodes);

/// What is compared between nodes, for docs/doctor.md: the name of the check, what it compares, its verdict.
struct Comparison {
  std::string check, what;
  Verdict verdict;
};
std::vector<Comparison> comparisons();

}  // namespace harness::doctor
