// NCCL's logs and files: what is ill in a part of a node is named with that part, what cannot be read is not judged.
#include <gmock/gmock.h>

#include "base/error.h"
#include "base/text.h"
#include "evidence/answer.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/temporary_folder.h"

namespace harness::test {
namespace {

using evidence::Answer;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Answer answer_to(const std::string& text) {
  static const TemporaryFolder scratch;
  return evidence::read_files({scratch.write("text", text)}, {}).front();
}

std::string sample_text(const char* name) {
  return text_of(source_dir() + "/tests/evidence/samples/" + name);
}

// All that it says.
std::string said_by(const Answer& answer) {
  std::string said = answer.headline;
  for (const auto& list : {answer.problems, answer.notes}) said += "\n" + join(list, "\n");
  for (const auto& [label, text] : answer.evidence) said += "\n" + text;
  return said;
}

// ---- its topology

// `text` with each `from` as `to`.
std::string with(const std::string& text, const std::string& from, const std::string& to) {
  return join(split_text(text, from), to);
}

// A switch with a GPU and an adapter, and another one: only the first pair's links and port are given.
struct Links {
  std::string gpu_speed = "32.0 GT/s PCIe", gpu_lanes = "16", adapter_speed = "32.0 GT/s PCIe", adapter_lanes = "16",
              port = "400000";

  std::string xml() const {
    std::string text = "<system version=\"1\">\n<cpu numaid=\"0\" arch=\"x86_64\">\n";
    for (int i = 0; i < 2; ++i) {
      const Links links = i == 0 ? *this : Links{};
      text += fmt::format(
          "<pci busid=\"0000:{0}0:00.0\" class=\"0x060400\" link_speed=\"16.0 GT/s PCIe\" link_width=\"8\">\n"
          "<pci busid=\"0000:{0}1:00.0\" class=\"0x020000\" link_speed=\"{1}\" link_width=\"{2}\">\n"
          "<nic><net name=\"mlx5_{5}\" dev=\"{5}\" speed=\"{6}\" port=\"1\" gdr=\"1\"/></nic>\n</pci>\n"
          "<pci busid=\"0000:{0}2:00.0\" class=\"0x030200\" link_speed=\"{3}\" link_width=\"{4}\">\n"
          "<gpu dev=\"{5}\" sm=\"90\" rank=\"{5}\" gdr=\"1\"/>\n</pci>\n</pci>\n",
          i + 2, links.adapter_speed, links.adapter_lanes, links.gpu_speed, links.gpu_lanes, i, links.port);
    }
    return text + "</cpu>\n</system>\n";
  }
};

TEST(NcclTopology, ANarrowLinkIsThatOfTheGpuOrTheAdapter) {
  const auto problems = [&](const Links& links) { return answer_to(links.xml()).problems; };
  EXPECT_THAT(problems({}), testing::IsEmpty());
  for (const char* lanes : {"1", "2", "4", "8"}) {
    EXPECT_THAT(problems({.gpu_lanes = lanes}),
                testing::ElementsAre(HasSubstr(fmt::format("GPU 0 (0000:22:00.0) has {} lanes", lanes))));
    EXPECT_THAT(problems({.adapter_lanes = lanes}),
                testing::ElementsAre(HasSubstr(fmt::format("mlx5_0 has {} lanes", lanes))));
  }
  for (const char* speed : {"2.5 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe"}) {
    EXPECT_THAT(problems({.gpu_speed = speed}), testing::ElementsAre(HasSubstr("GPU 0 (0000:22:00.0) has 16 lanes")));
    EXPECT_THAT(problems({.adapter_speed = speed}), testing::ElementsAre(HasSubstr("mlx5_0 has 16 lanes")));
  }
  EXPECT_THAT(problems({.gpu_lanes = "4", .port = "100000"}), testing::IsEmpty());
  // Ports that are faster than any GPU of that generation.
  const std::string older = with(Links{}.xml(), "32.0 GT/s", "16.0 GT/s");
  EXPECT_THAT(answer_to(older).notes, Contains(HasSubstr("one GPU alone cannot fill it")));
  for (const std::string& problem : answer_to(older).problems)
    EXPECT_THAT(problem, testing::Not(HasSubstr("GPU"))) << problem;
}

TEST(NcclTopology, WhatCannotBeReadIsUnknownAndNotJudged) {
  for (std::string Links::*part :
       {&Links::gpu_speed, &Links::gpu_lanes, &Links::adapter_speed, &Links::adapter_lanes, &Links::port}) {
    for (const char* bad : {"", "0", "-1", "Unknown", "nan", "-nan", "inf", "1e300", "9999999999", "x"}) {
      Links links;
      links.*part = bad;
      const Answer answer = answer_to(links.xml());
      const std::string said = said_by(answer);
      EXPECT_THAT(answer.problems, testing::IsEmpty()) << bad;
      EXPECT_THAT(said, testing::Not(HasSubstr("no PCIe link is narrower"))) << bad;
      EXPECT_THAT(said, testing::Not(testing::ContainsRegex("nan GB|inf G|nan G"))) << bad;
      EXPECT_THAT(answer.notes, testing::Contains(HasSubstr("not judged"))) << bad;
    }
  }
  const std::string silent = with(Links{}.xml(), "32.0 GT/s PCIe", "Unknown");
  EXPECT_THAT(answer_to(silent).headline, HasSubstr("the file does not say whether a PCIe link is narrower"));
}

TEST(NcclTopology, ACutFileIsSaidToBeCut) {
  for (const std::string& whole : {Links{}.xml(), sample_text("nccl-topology.xml"), sample_text("nccl-graph.xml")}) {
    const std::size_t last = whole.rfind('>');
    for (std::size_t length = whole.find('>') + 1; length <= last; length += 3) {
      EXPECT_THAT(error_of([&] { answer_to(whole.substr(0, length)); }),
                  testing::AnyOf(HasSubstr("it is cut"), HasSubstr("it holds no")))
          << whole.substr(0, length);
    }
    EXPECT_EQ(error_of([&] { answer_to(whole.substr(0, last + 1)); }), "");
  }
}

}  // namespace
}  // namespace harness::test
