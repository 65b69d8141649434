// Rehearses on the cpu backend the commands of scripts/first_light.sh for a GPU, and those of the tutorial.
#include <sstream>
#include <vector>

#include "user.h"

namespace harness {
namespace {

Outcome first_light(const TemporaryFolder& folder, const std::string& command, int seconds,
                    const std::string& program = test::program_path()) {
  return test::run("env BACKEND=cpu PYTHON=false HARNESS=" + program + " OUT=" + folder / "out" + " KEPT=" +
                   folder / "kept" + " LIMIT=" + std::to_string(seconds) + " bash scripts/first_light.sh " + command);
}

#ifndef __SANITIZE_ADDRESS__  // these test the script; the programs that it runs have their own tests
TEST(FirstLight, TheFirstCommandPassesWithoutAGpu) {
  const TemporaryFolder folder;
  const auto o = first_light(folder, "1", 1000);
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err << test::text_of(folder / "kept/layouts.txt");
  for (const char* part : {"operations", "training", "layouts"}) {
    EXPECT_THAT(o.out, ContainsRegex(std::string(part) + " .* passed"));
  }
  EXPECT_THAT(o.out, HasSubstr("not run: needs a GPU and compute-sanitizer"));
  EXPECT_EQ(o.err, "");
  EXPECT_EQ(test::text_of(folder / "out/table1.txt"), o.out);
  EXPECT_THAT(test::text_of(folder / "out/training.txt"), HasSubstr("reference: Llama-style gradients fp32: passed"));
  EXPECT_FALSE(test::text_of(folder / "out/kept1.tgz").empty());
}

TEST(FirstLight, TheSecondCommandMeasuresAndKillsAWorker) {
  const TemporaryFolder folder;
  const auto o = first_light(folder, "2", 1000);
  // Whether the doctor and the calibration pass depends on the machine's load.
  for (const char* part : {"speed", "again", "killed"}) {
    EXPECT_THAT(o.out, ContainsRegex(std::string(part) + " .* passed")) << o.err;
  }
  EXPECT_THAT(o.out, Not(HasSubstr("killed       not exactly one case")));
  EXPECT_THAT(o.out, ContainsRegex("tokens/s +harness [1-9][0-9]*, PyTorch 0, harness again [1-9]"));
  EXPECT_THAT(test::text_of(folder / "out/speed.txt"), HasSubstr("attention=unfused"));
}

#endif

TEST(FirstLight, WhatHasNoTimeLeftIsNotRun) {
  const TemporaryFolder folder;
  const auto o = first_light(folder, "2", 6);
  EXPECT_EQ(o.exit_code, 1);
  for (const char* part : {"killed", "load", "calibrate"}) {
    EXPECT_THAT(o.out, ContainsRegex(std::string(part) + " .* not run: no time left"));
  }
}

TEST(FirstLight, AProgramThatDoesNotRunIsSaid) {
  const TemporaryFolder folder;
  const auto o = first_light(folder, "1", 100, "/bin/false");
  EXPECT_EQ(o.exit_code, 1);
  EXPECT_THAT(o.err, HasSubstr("/bin/false does not run"));
}

// The commands of docs/tutorial.md work, in order, in one folder. Outputs are compared if they do not depend on time.

using ::testing::AnyOf;

struct Step {
  std::string command;
  std::vector<std::string> shown;  // the lines below it
};

std::vector<Step> steps_of(const std::string& page) {
  std::vector<Step> steps;
  std::istringstream in(page);
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      inside = line == "```console";
    } else if (inside && line.starts_with("$ ")) {
      steps.push_back({line.substr(2), {}});
    } else if (inside && !line.empty()) {
      steps.back().shown.push_back(line);
    }
  }
  return steps;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Shortens a sweep to two rounds of a few cases, and a sleep to the wait for the result file.
std::string shortened(const std::string& command) {
  if (command.starts_with("sleep ")) {
    return "for i in $(seq 1200); do [ -e first.h5 ] && break; sleep 0.1; done";
  }
  const std::size_t at = command.find("sweep first.yaml");
  if (at == std::string::npos) return command;
  const std::string only = has(command, "--only") ? "" : " --only micro_batch_size";
  return std::string(command).insert(at + std::string("sweep first.yaml").size(),
                                     " --rounds 2 --set model.layers=1 --set measure.steps=1" + only);
}

// Runs all commands in one shell. Each writes its output and exit code to files with its number.
void run_all(const std::vector<Step>& steps, const TemporaryFolder& folder) {
  std::string script = "cd '" + folder.path() + "'\nexport OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " +
                       "OMPI_MCA_rmaps_base_oversubscribe=1\nexport PATH='" +
                       std::filesystem::path(test::program_path()).parent_path().string() + "':$PATH\n";
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string command = shortened(steps[i].command), number = std::to_string(i);
    const bool background = command.ends_with("&");
    script += background ? command + "\n" : "{ " + command + "; } > out" + number + "\necho $? > code" + number + "\n";
  }
  const Outcome outcome = test::run("bash '" + folder.write("tutorial.sh", script) + "'", 280);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST(Tutorial, ItsCommandsWork) {
  const std::vector<Step> steps = steps_of(test::text_of(test::source_dir() + "/docs/tutorial.md"));
  ASSERT_GE(steps.size(), 16u);
  const TemporaryFolder folder;
  run_all(steps, folder);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string& command = steps[i].command;
    if (command.ends_with("&")) continue;
    const std::string code = test::text_of(folder / ("code" + std::to_string(i)));
    const std::string output = test::text_of(folder / ("out" + std::to_string(i)));
    SCOPED_TRACE(command + "\n" + output);
    const bool measures = has(command, "sweep") || has(command, "compare") || command == "wait $!";
    if (measures) {
      EXPECT_THAT(code, AnyOf("0\n", "2\n", "4\n", "5\n"));  // the verdict of two rounds is chance
    } else {
      EXPECT_EQ(code, "0\n");
    }
    const bool timeless = has(command, "harness plan") || has(command, "harness variables");
    for (const std::string& line : timeless ? steps[i].shown : std::vector<std::string>()) {
      EXPECT_THAT(output, HasSubstr(line + "\n"));
    }
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "first.html"));
  EXPECT_THAT(test::text_of(folder / "first.log"), HasSubstr("harness sweep --resume first.h5"));
}

}  // namespace
}  // namespace harness
