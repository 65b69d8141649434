#pragma once

#include <optional>
#include <string>

#include "config/experiment.h"
#include "machine/topology.h"
#include "program/layout.h"

namespace harness::plan {

/// Why these settings cannot run together, or not on this hardware as far as its file says; "" if they can. Each value
/// on its own is valid. Only what is certain is refused: what may work is left to be tried.
std::string why_impossible(const config::Settings& settings, const std::optional<config::Hardware>& hardware);

/// How a case divides the ranks of a job.
struct Division {
  program::Layout layout;      // of the ranks it uses; meaningless when impossible
  std::string why_impossible;  // "" if there is a layout
};
/// Asks the workload, too, why its step cannot run with these settings or on this layout. `topology`: of the case,
/// as far as it is known.
Division divide_ranks(const config::Model& model, const config::Settings& settings, int ranks,
                      const machine::Topology& topology = {});

}  // namespace harness::plan
