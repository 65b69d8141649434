#pragma once

#include <string>

// Where things are. Only paths.cpp depends on the folder of the build, so that a compiler cache serves every other file
// of every clone.
namespace harness::test {

std::string source_dir();               // of the checkout
std::string program_path();             // the built harness, which also does what tests ask (base/identity.h)
std::string product_path();             // as it is installed: it does not
std::string emulated_program_path();    // with the cuda module over an emulated device: if HARNESS_HAS_EMULATED_PROGRAM
std::string incomplete_program_path();  // with a cuda module that misses a library: if HARNESS_HAS_EMULATED_PROGRAM

}  // namespace harness::test
