#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "config/settings.h"

namespace harness::sim {

/// There is no prediction of a case, and this is why.
struct NotPredicted : Error {
  /// `where`: in the step, after a space.
  explicit NotPredicted(const std::string& why, const std::string& where = "")
      : Error(where.empty() ? why : fmt::format("{} {}", why, where)), cause(why) {}
  std::string cause;  // without where: the same for all cases that have it
};

/// The variable by which the two differ and of whose value the simulation knows nothing, "nccl_buffsize"; "" if there
/// is none. What changes the Program, where ranks stand or the precision it knows; of the rest what stands in
/// known.cpp.
std::string unknown_change(const config::Settings& baseline, const config::Settings& changed);

/// Variables that these settings set to something of which a prediction takes no account.
std::vector<std::string> disregarded(const config::Settings& settings);

}  // namespace harness::sim
