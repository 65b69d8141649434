#include "base/test_hooks.h"

#include <array>
#include <cstdlib>

namespace harness {
namespace {

bool allowed = false;

constexpr std::array<const char*, 6> names{"HARNESS_TEST_FAULT",          "HARNESS_TEST_GPU_ROOT",
                                           "HARNESS_TEST_BOOT_ID",        "HARNESS_TEST_CLOCK_OFFSET_S",
                                           "HARNESS_TEST_SIGN_OF_LIFE_S", "HARNESS_TEST_TUNING_S"};

}  // namespace

void allow_test_hooks() {
  allowed = true;
}

const char* test_hook(const char* name) {
  return allowed ? std::getenv(name) : nullptr;
}

std::vector<std::string> ignored_test_hooks() {
  std::vector<std::string> ignored;
  for (const char* name : names) {
    if (!allowed && std::getenv(name) != nullptr) ignored.emplace_back(name);
  }
  return ignored;
}

}  // namespace harness
