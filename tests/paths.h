#pragma once

#include <string>

// Where things are, for tests. Only paths.cpp depends on the folder of the build, so that a compiler cache serves every
// other file of every clone.
namespace harness::paths {

std::string source_dir();        // of the checkout
std::string program();           // the built harness
std::string emulated_program();  // with the cuda module over an emulated device: where HARNESS_HAS_EMULATED_PROGRAM

}  // namespace harness::paths
