#include <iostream>

#include "cli/cli.h"

int main(int argc, char** argv) {
  return harness::cli::run_cli({argv + 1, argv + argc}, std::cout, std::cerr);
}
