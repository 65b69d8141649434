#include "sweep/busy_machine.h"

#include <fmt/format.h>

#include <cmath>

namespace harness::sweep {

std::string busy_machine(const machine::Conditions& conditions) {
  constexpr double busy_share = 0.1, much_stolen = 0.02;
  std::string what;
  if (conditions.foreign_cores > busy_share * conditions.cores) {
    what = fmt::format("other processes keep {:.1f} of {} cores busy on {}", conditions.foreign_cores, conditions.cores,
                       conditions.busiest_host);
  }
  if (conditions.steal_share > much_stolen) {
    if (!what.empty()) what += ", and ";
    what += fmt::format("its host gives {:.0f} % of its CPU time to other guests", 100 * conditions.steal_share);
  }
  if (what.empty()) return "";
  return fmt::format("this machine is busy: {}; verdicts will be less sharp", what);
}

}  // namespace harness::sweep
