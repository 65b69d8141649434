#pragma once

#include <string>

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
};

}  // namespace harness
