#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "machine/gpus.h"

namespace harness::cli {

struct InitOptions {
  int ranks = 0;        // 0: one per GPU, or by the cores
  std::string backend;  // "": cuda where there is a GPU
  std::string output = "harness.yaml";
};

/// Inputs of a first configuration.
struct FirstMachine {
  std::vector<machine::GpuHealth> gpus;
  int cores = 1;
  std::string cpu;  // its model
};

/// A first configuration, commented, and what it is for.
struct FirstConfiguration {
  std::string text;
  std::string summary;  // "backend cpu, 2 ranks on the 2 cores of …"
  int ranks = 1;
  bool crowded = false;  // more ranks than cores to compute on
};

/// `options.output` is where it will stand: paths in it are from there. Throws Error.
FirstConfiguration first_configuration(const FirstMachine& machine, const InitOptions& options);

/// Writes it for this machine and says how to go on. Throws Error if the file exists.
int init(const InitOptions& options, std::ostream& out);

}  // namespace harness::cli
