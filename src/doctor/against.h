#pragma once

#include <string>
#include <vector>

#include "doctor/diagnosis.h"
#include "doctor/recorded_facts.h"

namespace harness::doctor {

/// A fact that is another one now, on these nodes alike.
struct Change {
  std::string what, was, now;  // the fact's name; "(none)" where there was or is none
  std::vector<std::string> nodes;
};

/// What changed on the nodes since an earlier look.
struct Changes {
  std::string since;                     // when that was
  std::vector<std::string> gone, added;  // hosts
  std::vector<Change> facts;             // in the order of nodes, then of names
  std::vector<Line> new_findings;        // failures and warnings that were not there then
};

/// Nodes are the same by host. Facts that differ at every look (load, free memory, temperature) do not count, and what
/// counts events counts where it has risen.
Changes changes_since(const RecordedFacts& earlier, const RecordedFacts& present);

}  // namespace harness::doctor
