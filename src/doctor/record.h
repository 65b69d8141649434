#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "doctor/check.h"
#include "doctor/facts.h"
#include "store/result.h"

namespace harness::doctor {

/// The sweep whose nodes are judged.
struct SweepToJudge {
  bool uses_gpus = true;     // if false, findings about GPUs and NCCL's settings do not matter
  bool shares_gpus = false;  // several ranks may use one GPU
  /// The environment that each case sets for its workers. The first is the baseline.
  std::vector<std::pair<std::int32_t, NameValues>> cases;
};

/// Returns the part of an examination that a result keeps: the facts, and the failures, warnings, unreadable facts and
/// remarks that concern the sweep. Leaves out the CPU load, which the sweep records in every block. The settings of
/// each case are checked against the nodes and against the rest of its environment; a finding that the baseline shares
/// is recorded for the baseline alone.
store::DoctorRecord record_of(const std::vector<Node>& nodes, const SweepToJudge& sweep);

/// The failures of nodes, a line each; "" if there is none. `also_silent_nodes`: includes nodes that did not deliver
/// all facts in time, whose health is unknown.
std::string failures_in_words(const store::DoctorRecord& record, bool also_silent_nodes = false);

/// The facts of all nodes at one time, as stored in a result file.
struct RecordedFacts {
  std::string created, tool_version;
  std::vector<Node> nodes;
};

/// Writes one JSON object. A fact that all nodes share is written once. Bytes that are not UTF-8 are lost.
std::string write_facts(const RecordedFacts& facts);

/// The largest input of read_facts().
inline constexpr std::size_t most_fact_bytes = std::size_t{64} << 20;

/// Throws Error with `name`, one line, for input that write_facts() did not write: too large, not JSON, other JSON, a
/// later version, facts that are not strings.
RecordedFacts read_facts(const std::string& text, const std::string& name);

/// A fact whose value changed in the same way on these nodes.
struct Change {
  std::string what, was, now;  // the fact's name; "(none)" if it was or is absent
  std::vector<std::string> nodes;
};

/// The changes on the nodes since an earlier examination.
struct Changes {
  std::string since;                     // when it took place
  std::vector<std::string> gone, added;  // hosts
  std::vector<Change> facts;             // in the order of nodes, then of names
  std::vector<Line> new_findings;        // failures and warnings that are new
};

/// Matches nodes by host. Ignores facts that always differ (load, free memory, temperature); event counters count only
/// if they rose.
Changes changes_since(const RecordedFacts& earlier, const RecordedFacts& present);

}  // namespace harness::doctor
