#include "cli/cli.h"

#include <ostream>

namespace harness {

int run_cli(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  (void)out;
  err << "harness: nothing can be run yet (" << arguments.size() << " arguments)\n";
  return 1;
}

}  // namespace harness
