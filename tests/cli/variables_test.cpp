#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/verbs.h"
#include "config/choice.h"
#include "config/registry.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/paths.h"

namespace harness::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string output_of(const VariablesOptions& options) {
  std::ostringstream out;
  EXPECT_EQ(variables(options, out), 0);
  return out.str();
}

TEST(Variables, TheListHasEveryVariableAndEveryKey) {
  const std::string text = output_of({});
  for (const config::Variable& v : config::registry()) EXPECT_THAT(text, HasSubstr("\n" + v.name + "\n"));
  for (const config::Key& key : config::keys()) {
    if (key.help.empty()) continue;
    EXPECT_THAT(text, HasSubstr("\n" + key.name + "\n"));
  }
  EXPECT_THAT(text, Not(HasSubstr("measure.weight.")));
}

TEST(Variables, AnEntryIsWhole) {
  EXPECT_EQ(output_of({.name = "allreduce_algorithm"}),
            "allreduce_algorithm\n"
            "  Gloo's algorithm for all-reduces above 4 KiB (NCCL's is nccl_algo)\n"
            "  values     ring, halving_doubling\n"
            "  default    ring\n"
            "  backends   cpu\n"
            "  workloads  gpt, collective\n"
            "  swept      yes\n"
            "  example    sweep: {allreduce_algorithm: [halving_doubling]}\n");
  EXPECT_THAT(output_of({.name = "nccl_algo"}), HasSubstr("sets       NCCL_ALGO in the workers' environment"));
  EXPECT_THAT(output_of({.name = "gemm"}), HasSubstr("also from_model"));
  EXPECT_THAT(output_of({.name = "workload"}), HasSubstr("no: the same for all cases"));
}

TEST(Variables, KeysAreFoundByTheirLastWordAndByTheirMap) {
  EXPECT_THAT(output_of({.name = "measure.rounds"}), AllOf(HasSubstr("1 to 10000"), HasSubstr("12; 40")));
  EXPECT_EQ(output_of({.name = "rounds"}), output_of({.name = "measure.rounds"}));
  EXPECT_THAT(output_of({.name = "cost"}), AllOf(HasSubstr("cost.per_gpu_hour"), HasSubstr("cost.run.tokens")));
  EXPECT_THAT(output_of({.name = "backend"}), HasSubstr("required   yes"));
}

TEST(Variables, AnUnknownNameGetsTheNearest) {
  const auto complaint = [](const std::string& name) { return test::error_of([&] { output_of({.name = name}); }); };
  EXPECT_THAT(complaint("bucket_sizes"), HasSubstr("did you mean bucket_size?"));
  EXPECT_THAT(complaint("measure.round"), HasSubstr("did you mean measure.rounds?"));
  EXPECT_THAT(complaint("smalest_effect"), HasSubstr("did you mean smallest_effect?"));
  EXPECT_THAT(complaint("tensor_parallel"), HasSubstr("it is a part of layout: layout: {tensor_parallel: 2}"));
  EXPECT_THAT(complaint("cp"), HasSubstr("here it is layout.context_parallel"));
  EXPECT_THAT(complaint("sequence_length"), HasSubstr("here it is model.sequence"));
  EXPECT_THAT(complaint("seq_length"), HasSubstr("here it is model.sequence"));
  EXPECT_THAT(complaint("zzzzzzzz"), AllOf(HasSubstr("`harness variables` lists them"), Not(HasSubstr("did you"))));
}

TEST(Variables, TheSchemaIsOfAllVariables) {
  EXPECT_THAT(output_of({.name = "", .schema = true}), ::testing::StartsWith("{\n \"$schema\""));
  EXPECT_EQ(test::error_of([] { output_of({.name = "ranks", .schema = true}); }),
            "--schema writes all variables; leave out 'ranks'");
}

// HARNESS_UPDATE_GOLDEN=1 writes the page.
TEST(Variables, ThePageIsTheProgramsOutput) {
  const std::string path = test::source_dir() + "/docs/variables.md", text = output_of({.name = "", .format = "md"});
  if (std::getenv("HARNESS_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(test::text_of(path), text) << "run `harness variables --format md > docs/variables.md`";
}

}  // namespace
}  // namespace harness::cli
