#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evidence/answer.h"
#include "evidence/input.h"

namespace harness::evidence {

// Short files about a job's devices and processes. Each function throws Error for a text of any other kind.

/// Reads `nvidia-smi topo -m`: how the GPUs and network adapters of a node are connected.
Answer topology_matrix(std::string_view text);
/// Returns whether the text holds such a matrix, with or without its legend.
bool is_topology_matrix(std::string_view text);
/// Reads NCCL_TOPO_DUMP_FILE: the PCI tree as NCCL sees it.
Answer nccl_topology(std::string_view text);
/// Reads NCCL_GRAPH_DUMP_FILE: channels and bandwidth of each algorithm.
Answer nccl_graphs(std::string_view text);
/// Reads a hostfile of Open MPI ("node slots=8"), MPICH ("node:8") or DeepSpeed.
Answer hostfile(std::string_view text);
/// Returns whether the text is a hostfile: only hosts with slots, or several lines of one host name each.
bool is_hostfile(std::string_view text);

/// Reads NCCL Inspector output (profiler plug-in of NCCL 2.28 and later): JSON objects, indented or one per line.
class InspectorReader {
 public:
  void line(std::string_view text);
  Answer finish();

 private:
  void object(const std::string& text);

  struct Collective {
    double shortest_s = 0, longest_s = 0, busbw = 0;
    std::int64_t last_rank = 0, records = 0;  // last_rank: arrived last, so its time is the shortest
  };
  using Kind = std::pair<std::string, std::int64_t>;   // name, bytes
  using Place = std::pair<std::string, std::int64_t>;  // communicator, sequence number in it

  std::string open_;  // text of an unfinished object
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false, skipping_ = false;
  std::map<Kind, std::map<Place, Collective>> collectives_;
  std::size_t kept_ = 0;                               // number of collectives
  std::map<std::string, std::int64_t> communicators_;  // number of ranks by communicator
  std::set<std::string> hosts_;
  std::int64_t damaged_ = 0;
  bool cut_ = false;
};

/// Reads dumps of PyTorch's Flight Recorder in JSON: the last collectives of each rank. All files are from one job.
class FlightRecorder {
 public:
  /// Throws Error for any other text.
  void file(const std::string& text, const std::string& name);
  Answer finish() const;

  struct Entry {
    std::string name, shape, state;
  };
  struct Member {
    std::int64_t rank = -1;  // -1: not recorded
    std::string file;
    std::int64_t enqueued = -1, started = -1, completed = -1;  // sequence numbers; -1: none
    std::map<std::int64_t, Entry> entries;

    bool is_open() const { return enqueued > completed; }
    std::string name() const { return rank >= 0 ? fmt::format("rank {}", rank) : file; }
  };
  struct Group {
    std::string description;
    std::vector<std::int64_t> ranks;  // if the file lists them
    std::vector<Member> members;
  };

 private:
  std::vector<const Member*> late_in(const Group& group) const;

  std::map<std::string, Group> groups_;  // by process group id
};

}  // namespace harness::evidence
