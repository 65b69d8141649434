#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "store/result.h"

namespace harness {

bool is_collective(const std::string& kind);  // names of operations, as the file has them
bool is_communication(const std::string& kind);

/// Which ranks of a case stand together: the layout as the GPT step numbers it, rank = tensor + T (data + D pipeline).
struct Places {
  explicit Places(const ResultCase& one);
  int tensor = 1, data = 1, pipeline = 1, ranks = 1;
  int stage_ranks() const { return tensor * data; }
  int stage_of(int rank) const { return rank / stage_ranks(); }
  /// First, number and distance of the members of the own communicator on this stream, or of the own stage's ranks.
  struct Members {
    int first = 0, count = 1, stride = 1;
  };
  Members members(int rank, const std::string& stream) const;
};

/// How much of their collectives ranks of one case spent waiting, from what all ranks spent in them: who comes last
/// waits for nobody, so a member's total beyond the fastest member's is waiting. An approximation: the totals of a
/// stream are compared, not one collective after the other, so ranks that wait for each other in turn wait less in here
/// than they did.
class Waits {
 public:
  Waits(const Result& result, int case_index);

  bool known() const { return !seconds_.empty(); }
  /// Share of the rank's time in collectives of this kind and stream that it waited for members of its own stage.
  double for_members(int rank, const std::string& stream, const std::string& kind) const;
  /// The same for a collective that spans all stages: share that its whole stage waited for another one.
  double for_stages(int rank, const std::string& stream, const std::string& kind) const;
  /// Seconds in all collectives.
  double total(int rank) const;
  const Places& places() const { return places_; }

 private:
  const std::vector<double>* seconds(const std::string& stream, const std::string& kind) const;
  Places places_;
  std::map<std::pair<std::string, std::string>, std::vector<double>> seconds_;  // (stream, kind) → by rank; NaN: none
};

}  // namespace harness
