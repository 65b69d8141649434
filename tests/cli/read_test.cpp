#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "readers_fixture.h"
#include "report/clean_text.h"
#include "support/paths.h"

namespace harness::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string sample(const std::string& name) {
  return test::source_dir() + "/tests/evidence/samples/" + name;
}

TEST_F(Readers, ReadPutsTheHeadlineFirstAndCommandsLast) {
  const Said said = say({"read", sample("nccl-timeouts.log")});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, AllOf(HasSubstr(": nccl log\n3 nodes timed out on one peer, 10.9.0.7."), HasSubstr("\n! "),
                              HasSubstr("\nNext:\n  ./harness doctor")));
}

// All but commands, which are to be pasted, and the path of this checkout.
TEST_F(Readers, ReadFitsEightyColumns) {
  for (const char* name : {"megatron-arguments.log", "nccl-tests-hole.txt", "nccl-without-direct.log", "hostfile"}) {
    const std::string text = say({"read", sample(name)}).out;
    std::vector<std::string> lines = split_text(text.substr(0, text.find("\nNext:")), "\n");
    lines.erase(lines.begin());
    for (const std::string& line : lines) EXPECT_LE(report::columns_of(line), 80u) << line;
  }
}

TEST_F(Readers, ReadWritesJsonByTheKeysOfTheEvidence) {
  const Said said = say({"read", sample("nccl-tests-hole.txt"), sample("megatron-jump.log"), "--format", "json"});
  const auto json = nlohmann::json::parse(said.out);
  EXPECT_EQ(json["schema"], "harness-read");
  EXPECT_EQ(json["kind"], "training log");
  EXPECT_EQ(json["log"]["jump"], "+12.5 %");
  EXPECT_EQ(json["log"]["by_iteration"].size(), 30u);
  EXPECT_EQ(json["also"][0]["bandwidths"]["ranks"], 8);
  EXPECT_EQ(json["also"][0]["bandwidths"]["by_size"][0]["bytes"], 1048576.0);
  for (const char* list : {"problems", "cannot", "refused", "notes", "next"})
    EXPECT_TRUE(json[list].is_array()) << list;
}

TEST_F(Readers, ReadEscapesWhatAFileSays) {
  const std::string path = folder_.write("log",
                                         "\xc2\x9b"
                                         "31mh:1:2 [0] NCCL WARN odd \xff\xe2\x80\xae text\n");
  const Said said = say({"read", path});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.out.find('\x9b'), std::string::npos);
  EXPECT_EQ(said.out.find('\xff'), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(say({"read", path, "--format", "json"}).out)["kind"], "nccl log");
}

TEST_F(Readers, ReadTakesGapsBySetAndNamesMistakes) {
  const std::string osu = sample("osu-allgather.txt");
  EXPECT_THAT(say({"read", osu, "--set", "ranks=4"}).out, HasSubstr("busbw"));
  EXPECT_THAT(say({"read", osu, "--set", "rank=4"}).err, HasSubstr("did you mean ranks?"));
  EXPECT_THAT(say({"read", osu, "--set", "ranks=0"}).err, HasSubstr("--set ranks: found 0; allowed: 1 to 1048576"));
  EXPECT_THAT(say({"read", osu, "--set", "hardware=nothing"}).err, HasSubstr("--set hardware: "));
  const Said none = say({"read", folder_.write("x", "hello\n")});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("not recognised; harness reads a training log"));
  EXPECT_THAT(say({"read"}).err, HasSubstr("files"));
}

}  // namespace
}  // namespace harness::cli
