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
  bool uses_gpus = true;     // else what is wrong with GPUs and NCCL's settings does not concern it
  bool shares_gpus = false;  // several ranks may use one GPU
  /// The environment that each case sets for its workers. The first is the baseline.
  std::vector<std::pair<std::int32_t, NameValues>> cases;
};

/// The part of an examination that a result keeps: failures, warnings, what could not be read and what is worth
/// knowing, as far as it concerns the sweep, with the facts. The load of a moment is left out: a sweep
/// watches it in every block. What a case sets is held against the nodes and against the rest of its environment; a
/// finding that the baseline has, too, is the baseline's alone.
store::DoctorRecord record_of(const std::vector<Node>& nodes, const SweepToJudge& sweep);

/// Failures of nodes, a line each; "" if there is none. `also_silent_nodes`: with those that did not tell all in time,
/// of which it is not known whether they are healthy.
std::string failures_in_words(const store::DoctorRecord& record, bool also_silent_nodes = false);

/// The facts of all nodes at one time, as a result file records them.
struct RecordedFacts {
  std::string created, tool_version;
  std::vector<Node> nodes;
};

/// One JSON object. A fact that all nodes have alike stands in it once. Bytes that are no UTF-8 are lost.
std::string write_facts(const RecordedFacts& facts);

/// The largest text that read_facts() takes.
inline constexpr std::size_t most_fact_bytes = std::size_t{64} << 20;

/// Throws Error with `name`, one line, for everything that write_facts() does not write: too much of it, no JSON, JSON
/// of something else, a later version, facts that are no texts.
RecordedFacts read_facts(const std::string& text, const std::string& name);

/// A fact that is another one now, on these nodes alike.
struct Change {
  std::string what, was, now;  // the fact's name; "(none)" where there was or is none
  std::vector<std::string> nodes;
};

/// The changes on the nodes since an earlier look.
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
