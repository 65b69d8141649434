#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace harness::plan {
namespace {

using ::testing::HasSubstr;

config::Settings with(const std::map<std::string, std::string>& nccl) {
  config::Settings s;
  for (const auto& [name, value] : nccl) config::find_variable(name)->parse(s, value);
  return s;
}

config::Hardware of_capability(int compute_capability) {
  config::Hardware h;
  h.name = "Card";
  h.compute_capability = compute_capability;
  return h;
}

TEST(WhyImpossible, NvlsNeedsHopper) {
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"nccl_algo", "AllReduce:NVLSTree"}, {"nccl_nvls", "1"}}) {
    const config::Settings s = with({{name, value}});
    EXPECT_THAT(why_impossible(s, of_capability(80)), HasSubstr("Card (compute capability 8.0)")) << name;
    EXPECT_EQ(why_impossible(s, of_capability(90)), "") << name;
    EXPECT_EQ(why_impossible(s, of_capability(0)), "") << name << ": the file does not say";
    EXPECT_EQ(why_impossible(s, std::nullopt), "") << name;
  }
  EXPECT_NE(why_impossible(with({{"nccl_algo", "Ring;AllReduce:Tree,NVLS"}}), of_capability(89)), "");
  EXPECT_EQ(why_impossible(with({{"nccl_algo", "^NVLS,NVLSTree"}}), of_capability(80)), "");
  EXPECT_EQ(why_impossible(with({{"nccl_algo", "Ring;AllReduce:^NVLS"}, {"nccl_nvls", "2"}}), of_capability(80)), "");
}

TEST(WhyImpossible, ShardsOfANodeNeedNodesThatAreAlike) {
  const config::Model model{"m", 2, 64, 4, 256, 32};
  config::Settings s;
  s.layout = {{program::Axis::tensor, 2}};
  s.sharding = config::Sharding::parameters;
  s.sharding_group = config::ShardingGroup::node;
  const auto on = [&](int ranks_of_node) {
    return divide_ranks(model, s, 16, machine::Topology::node_by_node(16, ranks_of_node));
  };
  EXPECT_EQ(on(8).why_impossible, "");
  EXPECT_EQ(on(8).layout.replicas_of_node, 4);
  EXPECT_EQ(on(16).layout.replicas_of_node, 8);
  EXPECT_THAT(on(12).why_impossible, HasSubstr("not every node has as many of the 8 replicas"));
  EXPECT_THAT(on(2).why_impossible, HasSubstr("is on a node of its own"));
  EXPECT_THAT(divide_ranks(model, s, 16).why_impossible, HasSubstr("not known"));
  s.ranks = 8;  // of the first node alone
  EXPECT_EQ(on(8).layout.replicas_of_node, 4);
}

TEST(WhyImpossible, PrecisionsNeedTheirTensorCores) {
  config::Settings s;
  EXPECT_EQ(why_impossible(s, of_capability(70)), "");
  s.precision = config::Precision::bf16;
  EXPECT_THAT(why_impossible(s, of_capability(70)), HasSubstr("precision bf16"));
  EXPECT_EQ(why_impossible(s, of_capability(80)), "");
  s.precision = config::Precision::tf32;
  EXPECT_THAT(why_impossible(s, of_capability(75)), HasSubstr("precision tf32"));
  EXPECT_EQ(why_impossible(s, of_capability(86)), "");  // a peak that is not known is no error
}

TEST(WhyImpossible, SchedulesNeedStagesAndChunksTheirSchedule) {
  const auto why = [](int stages, const char* schedule, const char* chunks = "auto") {
    config::Settings s;
    s.layout = {{program::Axis::pipeline, stages}};
    config::find_variable("pipeline_schedule")->parse(s, schedule);
    config::find_variable("virtual_pipeline")->parse(s, chunks);
    return why_impossible(s, std::nullopt);
  };
  for (const char* schedule : {"1f1b", "gpipe"}) EXPECT_EQ(why(1, schedule), "");
  EXPECT_EQ(why(1, "interleaved"),
            "pipeline_schedule interleaved needs two stages or more; change pipeline_parallel (layout) with it");
  EXPECT_EQ(why(2, "interleaved"), "");
  EXPECT_EQ(why(2, "interleaved", "3"), "");
  for (const char* schedule : {"1f1b", "gpipe"}) {
    EXPECT_EQ(why(2, schedule, "3"), fmt::format("virtual_pipeline 3 needs pipeline_schedule interleaved, not {}; "
                                                 "change both together (combine)",
                                                 schedule));
  }
}

}  // namespace
}  // namespace harness::plan
