#pragma once

#include <vector>

#include "program/program.h"

namespace harness::cuda {

/// How an operation is launched, as far as the list around it decides that.
struct LaunchPlan {
  int multiprocessors = 0;  // that it may take, 0: all (share.h)
  /// The backward pass of a norm whose second stage the next one of its stream does, with its own: nobody needs the
  /// gradients of gamma, beta and bias before that one is complete.
  bool sums_later = false;
  /// Its own kernels may be launched programmatically (kernels/programmatic.h): directly ahead on its stream stands
  /// another computation, and no wait for another stream lies between.
  bool programmatic = false;
};

/// By operation of a list. Pure: it follows from what the operations access, their streams and waits. At most
/// most_joined_sums backward passes of norms in a row share a second stage. `programmatic`: whether programmatic
/// launches are wanted at all.
std::vector<LaunchPlan> plan_launches(const std::vector<program::Operation>& list, std::size_t streams,
                                      int multiprocessors, bool programmatic);

}  // namespace harness::cuda
