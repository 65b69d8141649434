// The product, with the hooks that tests need (base/identity.h).
#include <iostream>

#include "base/identity.h"
#include "cli/verbs.h"

int main(int argc, char** argv) {
  harness::allow_test_hooks();
  return harness::cli::run_cli({argv + 1, argv + argc}, std::cout, std::cerr);
}
