#pragma once

// What all tests of the built program use: they run it as a user does.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "store/result_file.h"
#include "support/command.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/soak.h"

namespace harness {

using test::Command;
using test::harness_job;
using test::Outcome;
using test::TemporaryFolder;
using test::write_small_config;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Runs the program without a launcher.
inline Outcome run_alone(const std::string& arguments) {
  return test::run(test::program_path() + " " + arguments);
}

/// Returns the environment that plants these faults in workers: "rank=1,kind=exit; …".
inline std::string planted(const std::string& faults) {
  return "HARNESS_TEST_FAULT='" + faults + "' ";
}

/// Runs a job of the program.
inline Outcome run_job(int ranks, const std::string& arguments, const std::string& environment = "") {
  return test::run(environment + harness_job(ranks, arguments));
}

/// Whether a sweep measured everything: on a busy machine, its control may move by chance, which is exit code 4.
inline bool is_measured(const Outcome& o) {
  return o.exit_code == 0 || o.exit_code == 4;
}

}  // namespace harness
