#include <iostream>

#include "cli/verbs.h"

int main(int argc, char** argv) {
  return harness::cli::run_cli({argv + 1, argv + argc}, std::cout, std::cerr);
}
