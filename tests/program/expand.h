#pragma once

#include "program/program.h"

namespace harness::program {

/// Returns the job with one role per rank: checks and predictions by role must agree with it.
inline ProgramSet expand(const ProgramSet& set) {
  ProgramSet out{set.layout, set.groups, AxisSet::all(), {}};
  for (int role = 0; role < set.layout.ranks(); ++role) {
    out.roles.push_back(set.roles.at(set.role_of(set.layout.coordinates(out.first_rank(role)))));
  }
  return out;
}

}  // namespace harness::program
