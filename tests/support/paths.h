#pragma once

#include <string>

// The locations of sources and programs. Only paths.cpp depends on the build folder, so that a compiler cache serves
// all other files of every clone.
namespace harness::test {

std::string source_dir();             // root of the checkout
std::string program_path();           // the built harness, with test hooks (base/identity.h)
std::string product_path();           // the installed harness, without them
std::string emulated_program_path();  // with the cuda module over an emulated device: if HARNESS_HAS_EMULATED_PROGRAM

}  // namespace harness::test
