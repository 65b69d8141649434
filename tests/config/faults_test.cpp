#include "config/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_files.h"

namespace harness::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string with_faults(const std::string& faults, const std::string& more = "") {
  return "backend: sim\nhardware: h100-sxm\nmodel: gpt3-125m\nfaults: " + faults + "\nbaseline: {precision: bf16}\n" +
         more;
}

const Faults all_faults{.slow_gpus = {{3, 0.8}},
                        .slow_links = {{1, 0.5}, {2, 0.25}},
                        .narrow_pcie = {{-1, 0, 0.5}, {9, -1, 0.25}},
                        .socket_bytes_per_s = 4e9,
                        .no_gpudirect = true,
                        .acs_on = true,
                        .tensor_across_nodes = true};

TEST(FaultsOfAConfiguration, AreRead) {
  const Faults f =
      test::loaded(with_faults("{slow_gpu: {rank: 3, speed: 80 %}, slow_link: [{node: 1, share: 0.5}, "
                               "{node: 2, share: 25 %}], pcie_downgraded: [{node: 0, share: 0.5}, {rank: 9, "
                               "share: 0.25}], socket_fallback: true, no_gpudirect: true, acs_on: true, "
                               "tensor_across_nodes: true}"))
          .faults;
  EXPECT_EQ(f, all_faults);
  EXPECT_EQ(test::loaded(with_faults("{socket_fallback: 1 GB/s}")).faults.socket_bytes_per_s, 1e9);
  EXPECT_EQ(test::loaded(with_faults("{socket_fallback: on}")).faults.socket_bytes_per_s, 4e9);
  EXPECT_FALSE(test::loaded(with_faults("{socket_fallback: false, acs_on: false}")).faults.any());
  EXPECT_FALSE(test::loaded(with_faults("{socket_fallback: no, acs_on: off}")).faults.any());
}

TEST(FaultsOfAConfiguration, AreRefusedWhereTheyStand) {
  EXPECT_THAT(test::complaint_about(with_faults("{slow_gpu: {rank: 3, speed: 1.2}}")),
              HasSubstr("a.yaml:4:37: faults.slow_gpu.speed: found '1.2'; allowed: a share above 0 %"));
  EXPECT_THAT(test::complaint_about(with_faults("{slow_gpu: {rank: -1, speed: 0.5}}")),
              HasSubstr("faults.slow_gpu.rank: found -1"));
  EXPECT_THAT(test::complaint_about(with_faults("{slow_gpu: {rank: 3}}")), HasSubstr("faults.slow_gpu.speed: missing"));
  EXPECT_THAT(test::complaint_about(with_faults("{slow_link: [{node: 1, share: 0.5}, {nod: 2, share: 0.5}]}")),
              HasSubstr("faults.slow_link[1].nod: unknown key; did you mean node?"));
  EXPECT_THAT(test::complaint_about(with_faults("{slow_link: [[{node: 1, share: 0.5}]]}")),
              HasSubstr("faults.slow_link[0]: found a list; expected a map with the keys node, share"));
  EXPECT_THAT(test::complaint_about(with_faults("{pcie_downgraded: {share: 0.5}}")),
              HasSubstr("expected one of rank and node"));
  EXPECT_THAT(test::complaint_about(with_faults("{pcie_downgraded: {rank: 1, node: 0, share: 0.5}}")),
              HasSubstr("expected one of rank and node"));
  EXPECT_THAT(test::complaint_about(with_faults("{socket_falback: true}")), HasSubstr("did you mean socket_fallback?"));
  EXPECT_THAT(test::complaint_about(with_faults("{socket_fallback: 4}")),
              HasSubstr("expected a bandwidth such as 50 GB/s"));
  EXPECT_THAT(test::complaint_about(with_faults("[slow_gpu]")),
              HasSubstr("a.yaml:4:9: faults: found a list; expected a map"));
}

TEST(FaultsOfAConfiguration, AreOfPredictionsOnly) {
  const std::string text = "backend: cpu\nmodel: gpt3-125m\nfaults: {acs_on: true}\nbaseline: {}\n";
  EXPECT_THAT(test::complaint_about(text), HasSubstr("a.yaml:3:1: faults: backend cpu measures a cluster as it is"));
  EXPECT_THAT(test::complaint_about("backend: cuda\nmodel: gpt3-125m\nbaseline: {precision: bf16, mended: acs_on}\n"),
              HasSubstr("baseline.mended: backend cuda does not honour it; backends that do: sim"));
}

TEST(FaultsOfAConfiguration, AreMendedOneByOneAndOnTopOfEachOther) {
  const Experiment e =
      test::loaded(with_faults("{acs_on: true, slow_gpu: {rank: 3, speed: 0.5}, socket_fallback: true}",
                               "sweep: {mended: [all, slow_gpu]}\nladder:\n  - sockets: {mended: "
                               "socket_fallback}\n  - acs: {mended: acs_on}\n"));
  const auto left = [&](std::size_t change) { return e.faults.without(e.changes[change].settings.mended); };
  ASSERT_EQ(e.changes.size(), 5U);
  EXPECT_FALSE(left(0).any());
  EXPECT_TRUE(left(1).acs_on && left(1).slow_gpus.empty() && left(1).socket_bytes_per_s > 0);
  EXPECT_EQ(case_name(e.changes[4]), "sockets + acs");
  EXPECT_TRUE(!left(4).acs_on && !left(4).slow_gpus.empty() && left(4).socket_bytes_per_s == 0);
}

TEST(FaultsOfAConfiguration, OnlyWhatIsWrongCanBeMended) {
  const std::string text = with_faults("{acs_on: true}", "sweep: {mended: [slow_gpu]}\n");
  EXPECT_THAT(test::complaint_about(text), HasSubstr("slow_gpu is mended by a case, but is not among the faults"));
  for (const std::string off : {"{acs_on: false}", "{acs_on: no}"})
    EXPECT_THAT(test::complaint_about(with_faults(off, "sweep: {mended: [acs_on]}\n")),
                HasSubstr("acs_on is mended by a case, but is not among the faults"));
  const std::string wrong = test::complaint_about(with_faults("{acs_on: maybe}", "sweep: {mended: [acs_on]}\n"));
  EXPECT_THAT(wrong, AllOf(HasSubstr("faults.acs_on: found 'maybe'"), Not(HasSubstr("not among"))));
  EXPECT_THAT(test::complaint_about(with_faults("{slow_gpu: {rank: 3, speed: 2}}", "sweep: {mended: [slow_gpu]}\n")),
              AllOf(HasSubstr("faults.slow_gpu.speed: found '2'"), Not(HasSubstr("not among"))));
}

TEST(Faults, TakingOneAwayLeavesTheOthers) {
  Faults left = all_faults;
  for (const Fault fault : {Fault::slow_gpu, Fault::slow_link, Fault::pcie_downgraded, Fault::socket_fallback,
                            Fault::no_gpudirect, Fault::acs_on, Fault::tensor_across_nodes}) {
    SCOPED_TRACE(name_of(fault));
    EXPECT_NE(all_faults.without({fault}), all_faults);
    EXPECT_TRUE(left.any());
    left = left.without({fault});
  }
  EXPECT_FALSE(left.any());
}

}  // namespace
}  // namespace harness::config
