#pragma once

#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "config/settings.h"

namespace harness::selftest {

/// The results that the step of a small model must have, from an independent implementation: tests/reference (its
/// README says how it was made). Losses of steps 0, 1, …, and every gradient of step 0.
struct Reference {
  config::Model model;
  config::Settings settings;  // its precision and global batch
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
Reference load_reference(const std::string& directory, config::Precision precision);

/// The models with today's options, each alone and together, in fp32; the model's name says which. Throws as above.
std::vector<Reference> load_model_references(const std::string& directory);

/// The first of `places` ("tests/reference/gpt_tiny.json") that exists in the folder of the program or one above it: a
/// program finds what came with it in its source tree's build folder, in a bundle and where it is installed. "" if none
/// does.
std::string find_beside(const std::string& program_path, std::initializer_list<const char*> places);
/// The folder of the reference that came with a program: share/harness/reference or tests/reference.
std::string find_reference(const std::string& program_path);

}  // namespace harness::selftest
