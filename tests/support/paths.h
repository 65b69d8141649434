#pragma once

#include <string>

// Paths of the checkout and the build. Only paths.cpp depends on the build folder, so that a compiler cache serves
// every other file in every clone.
namespace harness::test {

std::string source_dir();               // of the checkout
std::string program_path();             // the built harness, with test hooks (base/identity.h)
std::string product_path();             // the harness as installed, without test hooks
std::string emulated_program_path();    // with the cuda module on an emulated device, if HARNESS_HAS_EMULATED_PROGRAM
std::string incomplete_program_path();  // with a cuda module that lacks a library, if HARNESS_HAS_EMULATED_PROGRAM

}  // namespace harness::test
