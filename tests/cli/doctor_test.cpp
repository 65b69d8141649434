// The output of `harness doctor` for a node, and its exit codes.
#include <set>

#include "doctor/check.h"
#include "doctor/node_fixture.h"
#include "doctor/record.h"
#include "said.h"
#include "sim/link_time.h"

namespace harness::cli {
namespace {

using ::testing::StartsWith;

Said told(const std::string& root, DoctorOptions options = {}, int nodes = 1, int ranks_per_node = 2) {
  test::AnsweringJob job(nodes, ranks_per_node);
  options.sysroot = root;
  return outcome_of([&](std::ostream& out, std::ostream& /*err*/) { return doctor(job, options, out); });
}

TEST(Doctor, SaysPlainlyThatThereIsNoGpu) {
  const test::NodeTree tree("laptop");
  const Said all = told(tree.path());
  EXPECT_EQ(all.code, 0);
  EXPECT_THAT(all.out, AllOf(HasSubstr("1 node, 2 ranks, no NVIDIA GPU"), HasSubstr("No NVIDIA GPU: what concerns"),
                             HasSubstr("Passed: "), Not(HasSubstr("gpu."))));
  EXPECT_THAT(told(tree.path(), {.all = true}).out,
              AllOf(HasSubstr("skip     gpu.count"), HasSubstr("pass     cpu.governor"), HasSubstr("performance")));
}

TEST(Doctor, AFailureIsTheFirstLineAndExitCodeTwo) {
  test::Dgx tree;
  tree.write("sys/devices/" + test::hca_place(2) + "/current_link_width", "8");
  const Said all = told(tree.path());
  EXPECT_EQ(all.code, 2);
  EXPECT_THAT(all.out, AllOf(StartsWith("2 failures"), HasSubstr("fail     ib.pcie"),
                             HasSubstr("mlx5_2 runs on 8 of 16 PCIe lanes"), HasSubstr("What to do"),
                             HasSubstr("reseat the card")));
}

TEST(Doctor, AWarningCountsWhereItIsAskedFor) {
  test::NodeTree tree("laptop");
  tree.write("proc/sys/kernel/numa_balancing", "1");
  EXPECT_EQ(told(tree.path()).code, 0);
  EXPECT_EQ(told(tree.path(), {.strict = true}).code, 1);
}

// A folder that is misspelt, empty or not a node's tree is not healthy: nothing could be checked.
TEST(Doctor, WhereNothingCanBeReadItIsExitCodeThree) {
  const test::TemporaryFolder folder;
  folder.write("file", "x");
  folder.write("other/README", "x");
  for (const std::string& root : {folder / "none", folder / "file", folder / "other", folder.path()}) {
    const Said said = told(root, {}, 2);
    EXPECT_EQ(said.code, 3);
    EXPECT_EQ(said.out, "");
    EXPECT_THAT(said.err, AllOf(HasSubstr("nothing could be checked: below "), HasSubstr(root)));
  }
}

// One of two folders is misspelt: the node is reported as unchecked, and the other node is still examined.
TEST(Doctor, ANodeThatCannotBeReadIsNamed) {
  const test::TemporaryFolder folder;
  folder.write("root0/proc/sys/kernel/hostname", "node0");
  folder.write("root0/proc/loadavg", "0.10 0.10 0.10 1/999 1234");
  const Said said = told(folder / "root{rank}", {}, 2, 1);
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.out, AllOf(StartsWith("1 of 2 nodes could not be checked. "), HasSubstr("unknown  node.answers"),
                              HasSubstr("there is no such folder")));
}

TEST(Doctor, JsonHasAFindingOfEveryCheck) {
  test::Dgx tree;
  tree.write("sys/class/infiniband/mlx5_5/ports/1/rate", "200 Gb/sec (4X HDR)");
  const auto json = told(tree.path(), {.format = "json"}).json();
  EXPECT_EQ(json["schema"], "harness-doctor-report");
  EXPECT_EQ(json.at("nodes"), 1);
  EXPECT_EQ(json.at("gpus"), 8);
  EXPECT_EQ(json.at("failures"), 1);
  const auto& first = json.at("findings").at(0);
  EXPECT_EQ(first.at("check"), "ib.rate");
  EXPECT_EQ(first.at("verdict"), "fail");
  EXPECT_EQ(first.at("nodes"), nlohmann::json({"dgx01"}));
  EXPECT_NE(first.at("remedy"), "");
  std::set<std::string> told_of;
  for (const auto& finding : json.at("findings")) told_of.insert(finding.at("check").get<std::string>());
  for (const doctor::Check& check : doctor::checks()) EXPECT_TRUE(told_of.contains(check.about.id)) << check.about.id;
}

// The content of a node's files can neither colour the terminal nor break JSON.
TEST(Doctor, ARudeNameIsHarmless) {
  test::NodeTree tree("laptop");
  tree.write("etc/nccl.conf", "NCCL_\x1b[31m\xff=1");
  EXPECT_THAT(told(tree.path()).out, AllOf(HasSubstr("NCCL_"), Not(HasSubstr("\x1b"))));
  EXPECT_TRUE(told(tree.path(), {.format = "json"}).json().is_object());
}

// Writes the record that a sweep on the node would make.
void write_record(const std::string& path, const test::NodeTree& tree) {
  store::Result result = test::samples::everything();
  result.doctor = doctor::record_of({tree.node(2)}, {});
  write_result(path, result);
}

TEST(Doctor, SaysFirstWhatHasChangedSinceASweep) {
  const test::TemporaryFolder folder;
  test::Dgx tree;
  const std::string monday = folder / "monday.h5", tuesday = folder / "tuesday.h5";
  write_record(monday, tree);
  tree.write("sys/devices/" + test::hca_place(2) + "/current_link_width", "8");
  const std::string text = told(tree.path(), {.against = {monday}}).out;
  EXPECT_THAT(text, AllOf(HasSubstr("What has changed since 20"), HasSubstr("new: fail pcie.width on dgx01: adapter"),
                          HasSubstr("hca/mlx5_2/width")));
  EXPECT_LT(text.find("hca/mlx5_2/width"), text.find("\nverdict"));
  const auto json = told(tree.path(), {.format = "json", .against = {monday}}).json();
  EXPECT_EQ(json.at("since").at("new_findings").size(), 2u);

  // Two result files can be compared on any machine, without a job.
  write_record(tuesday, tree);
  const Said two = say({"doctor", "--against", monday, tuesday});
  EXPECT_EQ(two.code, 2) << two.err;
  EXPECT_THAT(two.out, AllOf(HasSubstr("What has changed since 20"), HasSubstr("1 node, 2 ranks, 8 NVIDIA GPUs"),
                             HasSubstr("new: fail pcie.width on dgx01: adapter")));
  EXPECT_THAT(say({"doctor", "--against", tuesday, tuesday}).out,
              HasSubstr("nothing, of what does not change at every look"));
}

TEST(Doctor, AFileWithoutARecordIsOneLine) {
  const test::TemporaryFolder folder;
  write_result(folder / "r.h5", test::samples::everything());
  write_record(folder / "good.h5", test::NodeTree("laptop"));
  folder.write("x.h5", "[[[");
  std::string lines;
  for (const char* file : {"r.h5", "x.h5", "none.h5", "."}) {
    const Said said = say({"doctor", "--against", folder / file, folder / "good.h5"});
    EXPECT_EQ(said.code, 3) << file;
    EXPECT_EQ(said.out, "");
    lines += said.err;
  }
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4) << lines;
  EXPECT_THAT(lines, HasSubstr("r.h5 holds no facts of doctor's"));
  EXPECT_EQ(say({"doctor", folder / "good.h5"}).code, 3);
  EXPECT_EQ(say({"doctor", "--against", folder / "good.h5", folder / "good.h5", "--stages", "static"}).code, 3);
}

Said asked(const std::vector<std::string>& more, const std::string& size = "14GB") {
  return say({"doctor", "--allreduce", size}, more);
}

// A frequent question: 14 GB in 2 ms on 16 machines with 8 x 400 Gbit/s. The least time is 2 (m - 1) / m x size / 400
// GB/s with m = 16, and size / 400 GB/s with SHARP.
TEST(Doctor, SaysThatAnAllReduceIsImpossible) {
  for (const auto& [within, code, verdict] : {std::tuple{"2ms", 2, "Within 2 ms: impossible"},
                                              {"50ms", 0, "Within 50 ms: possible with SHARP alone"},
                                              {"70ms", 0, "Within 70 ms: possible."}}) {
    const Said said = asked({"--hardware", "h100-sxm", "--ranks", "128", "--within", within});
    EXPECT_EQ(said.code, code);
    EXPECT_THAT(unwrapped(said.out),
                AllOf(HasSubstr("14 GB over 128 ranks on 16 nodes takes at least 65.6 ms, 35 ms where"),
                      HasSubstr(verdict), HasSubstr("400 GB/s between nodes")));
  }
  const auto json = asked({"--hardware", "h100-sxm", "--ranks", "128", "--within", "2 ms", "--format", "json"}).json();
  EXPECT_EQ(json["schema"], "harness-doctor-allreduce");
  EXPECT_NEAR(json.at("least_s").get<double>(), 2 * 15.0 / 16 * 14e9 / 400e9, 1e-9);
  EXPECT_NEAR(json.at("least_with_sharp_s").get<double>(), 0.035, 1e-9);
}

// The prediction equals that of sim, and is never below the least time.
TEST(Doctor, AnAllReduceIsPredictedAsSimPredictsIt) {
  const config::Calibration calibration = config::calibration_named("harness");
  for (const int ranks : {8, 1024}) {
    const std::vector<int> node_of = machine::Topology::node_by_node(ranks, 8).node_of;
    const sim::Network network = sim::network_of(config::hardware_named("dgx-a100"), {}, node_of);
    const sim::CollectiveTime time(program::Collective::all_reduce, {{ranks, ranks / 8, 8}}, network, calibration, {});
    for (const auto& [size, bytes] : {std::pair{"8B", 8.0}, {"14GB", 14e9}}) {
      const auto json =
          asked({"--hardware", "dgx-a100", "--ranks", std::to_string(ranks), "--format", "json"}, size).json();
      SCOPED_TRACE(fmt::format("{} ranks, {}", ranks, size));
      EXPECT_DOUBLE_EQ(json.at("predicted_s").get<double>(), time.seconds(bytes));
      EXPECT_GE(json.at("predicted_s").get<double>(), json.at("least_with_sharp_s").get<double>());
      EXPECT_GE(json.at("least_with_sharp_s").get<double>(), 0.6e-6);  // one step
    }
  }
}

TEST(Doctor, AnAllReduceThatNothingIsKnownOfIsRefused) {
  for (const auto& [arguments, words] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "--hardware"},
           {{"--hardware", "nothing"}, "nothing"},
           {{"--hardware", "l40s"}, "does not say how many GPUs"},
           {{"--hardware", "h100-sxm", "--within", "soon"}, "--within"},
           {{"--hardware", "h100-sxm", "--ranks", "1"}, "--ranks"},
           {{"--hardware", "h100-sxm", "--within", "0 s"}, "above 0"},
           {{"--hardware", "h100-sxm", "--within", "2"}, "--within: found '2'; expected a number above 0 with a unit"},
           {{"--hardware", "h100-sxm", "--against", "x"}, "--against"}}) {
    const Said said = asked(arguments);
    EXPECT_EQ(said.code, 3) << said.all();
    EXPECT_THAT(unwrapped(said.err), HasSubstr(words));
  }
  EXPECT_THAT(asked({"--hardware", "h100-sxm"}, "14").err,
              HasSubstr("found '14'; expected a number above 0 with a unit, such as 14GB"));
  EXPECT_THAT(asked({"--hardware", "h100-sxm"}, "fast").err, HasSubstr("found 'fast'; a size is a number with a unit"));
  EXPECT_EQ(say({"doctor", "--hardware", "h100-sxm"}).code, 3);
}

// Neither looks at a node.
TEST(Doctor, OptionsThatTheListOrAnAllReduceIgnoresAreRefused) {
  const Commands answers{{"doctor", "--list"}, {"doctor", "--allreduce", "1GB", "--hardware", "h100-sxm"}};
  const Commands ignored{{"--strict"}, {"--all"}, {"--stages", "static"}, {"--sysroot", "/"}, {"--against", "x.h5"}};
  for (const auto& answer : answers) {
    EXPECT_EQ(say(answer).code, 0);
    for (const auto& option : ignored) {
      const Said said = say(answer, option);
      EXPECT_NE(said.code, 0) << option[0];
      EXPECT_THAT(said.err, AllOf(HasSubstr(answer[1]), HasSubstr(option[0])));
    }
  }
  EXPECT_NE(say(answers[1], {"--list"}).code, 0);
}

// `doctor --list --format md` prints the table of docs/doctor.md.
TEST(Doctor, ThePageListsEveryCheck) {
  const std::string page = say({"doctor", "--list", "--format", "md"}).out;
  EXPECT_NE(test::text_of(test::source_dir() + "/docs/doctor.md").find(page), std::string::npos) << page;
  const Said list = say({"doctor", "--list"});
  EXPECT_EQ(list.code, 0);
  for (const char* id : {"gpu.count", "same.driver", "nccl.network", "load.pairs"})
    EXPECT_THAT(list.out, HasSubstr(id));
}

}  // namespace
}  // namespace harness::cli
