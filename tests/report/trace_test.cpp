#include "report/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "support/errors.h"
#include "support/sample_results.h"

namespace harness::report {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal(const store::Result& result, const std::string& name) {
  return test::error_of([&] { trace_json(result, name); });
}

// The complete events of a category.
std::vector<json> complete(const json& trace, const std::string& category) {
  std::vector<json> events;
  for (const json& e : trace["traceEvents"]) {
    if (e["ph"] == "X" && e["cat"] == category) events.push_back(e);
  }
  return events;
}

double end_of(const json& event) {
  return event["ts"].get<double>() + event["dur"].get<double>();
}

// Who reads it beside a configuration predicts the step of as many ranks.
TEST(Trace, SaysOfHowManyRanksItIs) {
  store::Result result = test::samples::with_timeline();
  EXPECT_EQ(json::parse(trace_json(result, "baseline"))["distributedInfo"]["world_size"], result.cases[0].ranks);
  const std::string name = result.cases[2].name = "layout={tensor_parallel: 2, pipeline_parallel: 1}";
  EXPECT_EQ(json::parse(trace_json(result, "TP2"))["otherData"]["case"], name);
}

// An operation of a stream begins when the one before has ended.
TEST(Trace, HasEveryIntervalAsACompleteEvent) {
  const json trace = json::parse(trace_json(test::samples::with_timeline(), "micro_batch_size=2"));
  std::map<std::pair<int, int>, std::string> threads;
  std::map<int, std::string> processes;
  for (const json& e : trace["traceEvents"]) {
    if (e["name"] == "thread_name") threads[{e["pid"], e["tid"]}] = e["args"]["name"];
    if (e["name"] == "process_name") processes[e["pid"]] = e["args"]["name"];
  }
  const std::vector<json> events = complete(trace, "kernel");
  std::map<std::pair<int, int>, double> end;
  double last_end = 0;
  for (const json& e : events) {
    double& last = end[{e["pid"], e["tid"]}];
    EXPECT_GE(e["ts"].get<double>(), std::max(0.0, last - 1e-6)) << e;
    last = end_of(e);
    last_end = std::max(last_end, last);
  }
  EXPECT_EQ(end.size(), 4u);
  EXPECT_EQ(events.size(), 2 * 30u);
  EXPECT_NEAR(last_end, 1e6 * 0.0203, 1e-3);
  EXPECT_EQ(processes, (std::map<int, std::string>{{0, "rank 0 (role 0, node1)"}, {2, "rank 2 (role 1, node1)"}}));
  EXPECT_EQ((threads[{0, 0}]), "compute");
  EXPECT_EQ((threads[{2, 1}]), "dp");
}

TEST(Trace, RanksShareAClockAndSlicesOfATrackDoNotOverlap) {
  store::Result result = test::samples::with_timeline();
  const store::ResultInterval some = result.timeline[0];
  const auto add = [&](int rank, const char* stream, const char* kind, double start_s, double end_s) {
    store::ResultInterval row = some;
    row.rank = rank;
    row.stream = stream;
    row.kind = kind;
    row.start_s = start_s;
    row.end_s = end_s;
    result.timeline.push_back(row);
  };
  add(0, "pipeline", "send", 0.0035929, 0.0129890);
  add(0, "pipeline", "receive", 0.0035929, 0.0129917);
  add(0, "world", "all_reduce", 0.0210, 0.0225);
  add(2, "world", "all_reduce", 0.0208, 0.0213);
  const json trace = json::parse(trace_json(result, "baseline"));
  std::map<std::pair<int, std::string>, int> tracks;
  std::map<int, double> closed_us;
  for (const auto& e : trace["traceEvents"]) {
    if (e["name"] == "thread_name") tracks[{e["pid"], e["args"]["name"]}] = e["tid"];
    if (e["args"].value("kind", "") == "all_reduce" && e["tid"] == tracks[{e["pid"], "world"}])
      closed_us[e["pid"]] = end_of(e);
  }
  EXPECT_TRUE(tracks.contains({0, "pipeline send"}));
  EXPECT_TRUE(tracks.contains({0, "pipeline receive"}));
  EXPECT_NEAR(closed_us[0], 22500, 1e-3);
  EXPECT_NEAR(closed_us[2], 22500, 1e-3);
  EXPECT_THAT(trace["otherData"]["clock"].get<std::string>(), HasSubstr("shared"));
}

TEST(Trace, SaysWhatAnOperationIsFor) {
  const json trace = json::parse(trace_json(test::samples::with_timeline(), "baseline"));
  const json product = complete(trace, "kernel").front();
  EXPECT_EQ(product["name"], "matmul qkv");
  EXPECT_EQ(product["args"], (json{{"kind", "matmul"},
                                   {"operation", 0},
                                   {"role", 0},
                                   {"phase", "forward"},
                                   {"layer", 0},
                                   {"micro_batch", 0},
                                   {"what", "qkv"}}));
}

TEST(Trace, MarksTheStepOfEachRank) {
  store::Result result = test::samples::with_timeline();
  result.splits[0].loading_s = 0.002;
  const json trace = json::parse(trace_json(result, "baseline"));
  std::map<int, double> steps_us, loaded_us;
  for (const json& e : complete(trace, "gpu_user_annotation")) steps_us[e["pid"]] = e["dur"];
  for (const json& e : complete(trace, "loading")) loaded_us[e["pid"]] = e["dur"];
  EXPECT_EQ(steps_us, (std::map<int, double>{{0, 20'500}, {2, 20'500}}));
  EXPECT_EQ(loaded_us, (std::map<int, double>{{0, 2000}}));
}

TEST(Trace, WhatIsNotThereIsNamed) {
  const store::Result result = test::samples::with_timeline();
  EXPECT_THAT(refusal(result, "baseline_again"), HasSubstr("it is the baseline"));
  EXPECT_THAT(refusal(result, "micro_batch_size=3"), HasSubstr("did you mean micro_batch_size=2?"));
  EXPECT_THAT(refusal(test::samples::nothing_moved(), "baseline"),
              HasSubstr("has no timeline: the file holds no profiled step of it"));
}

TEST(Trace, HostileTextsAndTimesStayInside) {
  store::Result result = test::samples::with_timeline();
  result.timeline[0].kind = "\"}]}\x1b[2J\xff";
  result.timeline[1].start_s = NAN;
  result.timeline[2].end_s = -1;
  result.timeline[3].case_index = 99;
  result.rank_table[0].host = "\x1b]0;x\x07";
  const std::string text = trace_json(result, "baseline");
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_EQ(std::count_if(text.begin(), text.end(), [](char c) { return c == '\n'; }), 1);
  EXPECT_NO_THROW(json::parse(text).size());
}

}  // namespace
}  // namespace harness::report
