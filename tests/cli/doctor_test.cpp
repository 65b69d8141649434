// What `harness doctor` prints of a node, and its exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/cli.h"
#include "cli/verbs.h"
#include "doctor/answering_job.h"
#include "doctor/node_fixture.h"

namespace harness::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Told {
  int code = 0;
  std::string text;
};

Told told(const test::NodeTree& tree, DoctorOptions options = {}, int ranks = 2) {
  test::AnsweringJob job(1, ranks);
  options.sysroot = tree.path();
  std::ostringstream out;
  const int code = doctor(job, options, out);
  return {code, out.str()};
}

TEST(Doctor, SaysPlainlyThatThereIsNoGpu) {
  const test::NodeTree tree("laptop");
  const Told all = told(tree);
  EXPECT_EQ(all.code, 0);
  EXPECT_THAT(all.text, AllOf(HasSubstr("1 node, 2 ranks, no NVIDIA GPU"), HasSubstr("No NVIDIA GPU: what concerns"),
                              HasSubstr("cpu.governor"), Not(HasSubstr("gpu."))));
}

TEST(Doctor, AFailureIsTheFirstLineAndExitCodeTwo) {
  test::NodeTree tree("dgx01");
  test::add_dgx(tree);
  tree.write("sys/devices/" + test::hca_place(2) + "/current_link_width", "8");
  const Told all = told(tree);
  EXPECT_EQ(all.code, 2);
  EXPECT_EQ(all.text.find("2 failures"), 0u) << all.text;
  EXPECT_THAT(all.text, AllOf(HasSubstr("fail     ib.pcie"), HasSubstr("mlx5_2 runs on 8 of 16 PCIe lanes"),
                              HasSubstr("What to do"), HasSubstr("reseat the card")));
}

TEST(Doctor, AWarningCountsWhereItIsAskedFor) {
  test::NodeTree tree("laptop");
  tree.write("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet");
  EXPECT_EQ(told(tree).code, 0);
  EXPECT_EQ(told(tree, {.strict = true}).code, 1);
}

TEST(Doctor, AllSaysWhyAlso) {
  const test::NodeTree tree("laptop");
  const Told all = told(tree, {.all = true});
  EXPECT_THAT(all.text,
              AllOf(HasSubstr("skip     gpu.count"), HasSubstr("pass     cpu.governor"), HasSubstr("performance")));
}

TEST(Doctor, JsonHasEveryFinding) {
  test::NodeTree tree("dgx01");
  test::add_dgx(tree);
  tree.write("sys/class/infiniband/mlx5_5/ports/1/rate", "200 Gb/sec (4X HDR)");
  const Told all = told(tree, {.format = "json"});
  const auto json = nlohmann::json::parse(all.text);
  EXPECT_EQ(json.at("nodes"), 1);
  EXPECT_EQ(json.at("gpus"), 8);
  EXPECT_EQ(json.at("failures"), 1);
  const auto& first = json.at("findings").at(0);
  EXPECT_EQ(first.at("check"), "ib.rate");
  EXPECT_EQ(first.at("verdict"), "fail");
  EXPECT_EQ(first.at("nodes"), nlohmann::json({"dgx01"}));
  EXPECT_NE(first.at("remedy"), "");
  EXPECT_GT(json.at("findings").size(), 40u);
}

TEST(Doctor, MarkdownIsATable) {
  test::NodeTree tree("laptop");
  tree.write("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet");
  EXPECT_THAT(told(tree, {.format = "md"}).text, HasSubstr("| warn | clock.source | laptop |"));
}

// What files of a node hold cannot set a terminal's colours, nor break JSON.
TEST(Doctor, ARudeNameIsHarmless) {
  test::NodeTree tree("laptop");
  tree.write("etc/nccl.conf", "NCCL_\x1b[31m\xff=1");
  EXPECT_EQ(told(tree).text.find('\x1b'), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(told(tree, {.format = "json"}).text, nullptr, false).is_object());
}

TEST(Doctor, ExplainsAVariableWithoutAJob) {
  std::ostringstream out, err;
  EXPECT_EQ(run_cli({"doctor", "--explain", "NCCL_SHARP_ENABLE"}, out, err), 0);
  EXPECT_THAT(out.str(), HasSubstr("NCCL_COLLNET_ENABLE=1"));
}

TEST(Doctor, AMistakeInTheCommandLineIsExitCodeThree) {
  std::ostringstream out, err;
  EXPECT_EQ(run_cli({"doctor", "--explain", "PATH"}, out, err), 3);
  EXPECT_EQ(run_cli({"doctor", "--explain"}, out, err), 3);
  EXPECT_EQ(run_cli({"doctor", "--explain", "NCCL_ALGO", "--sysrot", "/"}, out, err), 3);
  EXPECT_EQ(run_cli({"doctor", "--help"}, out, err), 0);
}

}  // namespace
}  // namespace harness::cli
