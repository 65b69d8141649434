#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "config/settings.h"

namespace harness {

/// What the step of a small model must compute, from an independent implementation: tests/reference (its README says
/// how it was made). Losses of steps 0, 1, …, and every gradient of step 0.
struct Reference {
  Model model;
  Settings settings;  // its precision and global batch
  std::uint64_t seed = 1;
  std::vector<double> losses;
  std::vector<float> gradients;

  /// By the name gpt::parameters gives it. Throws Error if there is none.
  std::span<const float> tensor(const std::string& name) const;

  struct Place {
    std::size_t offset = 0, count = 0;
  };
  std::map<std::string, Place> places;
};

/// `precision`: fp32 or bf16. Throws Error naming the file that is missing or wrong.
Reference load_reference(const std::string& directory, Precision precision);

/// Where the reference lies beside a program: DIRECTORY/bin/harness has it in DIRECTORY/share/reference, a program in a
/// source tree's build folder in the tree's tests/reference. "" if in neither.
std::string find_reference(const std::string& program_path);

}  // namespace harness
