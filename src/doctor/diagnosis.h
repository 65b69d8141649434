#pragma once

#include <string>
#include <vector>

#include "doctor/check.h"
#include "doctor/stage.h"

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

/// Everything that may be found, in the order in which a page lists it: checks of a node, what should be the same on
/// all nodes, and what the stages look at.
std::vector<About> all_checks();

/// A distinct finding with the nodes that it concerns.
struct Line {
  std::string check;
  Finding finding;
  std::string docs;
  std::vector<std::string> nodes;  // by host, in the order of their ranks; none: of the job as a whole
};

/// Where, in words: "node11", "all 16", "node1, node2, node3 and 4 more". all_nodes: how many there are.
std::string where_of(const Line& line, std::size_t all_nodes);

struct Diagnosis {
  std::vector<Line> lines;  // worst first, then in the order of checks
  std::size_t nodes = 0, ranks = 0, gpus = 0;
  std::size_t dark = 0;  // of the nodes, those of which nothing could be read

  std::size_t count(Verdict verdict) const;
};

/// Their sizes, and no findings.
Diagnosis count_nodes(const std::vector<Node>& nodes);
/// Every check of every node, and what differs between nodes. Findings that say the same are one line.
Diagnosis diagnose(const std::vector<Node>& nodes);

/// Adds the findings of stages, sorted in among the rest.
void add(Diagnosis& diagnosis, const std::vector<StageFinding>& said);

/// 0: all pass, or tell no more than there is to know; 2: a failure; 3: of a node nothing could be read; 1: a warning,
/// if `strict`.
int exit_code(const Diagnosis& diagnosis, bool strict);

}  // namespace harness::doctor
