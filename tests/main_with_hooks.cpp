// The product, with the hooks that tests need (base/identity.h) and the faults that they plant.
#include <iostream>

#include "base/identity.h"
#include "cli/verbs.h"
#include "worker/planted/test_fault.h"

int main(int argc, char** argv) {
  harness::allow_test_hooks();
  const std::vector<std::string> arguments{argv + 1, argv + argc};
  if (!arguments.empty() && arguments[0] == "worker")
    return harness::worker::run_worker(harness::test::with_faults(harness::worker::make_work));
  return harness::cli::run_cli(arguments, std::cout, std::cerr);
}
