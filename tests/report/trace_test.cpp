#include "report/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "golden.h"
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

double end_of(const json& event) {
  return event["ts"].get<double>() + event["dur"].get<double>();
}

// A line per event, and one for the rest.
TEST(Trace, Golden) {
  store::Result result = test::samples::with_timeline();
  result.splits[0].loading_s = 0.002;
  json trace = json::parse(trace_json(result, "baseline"));
  std::string lines;
  for (const json& event : trace["traceEvents"]) lines += event.dump() + "\n";
  trace.erase("traceEvents");
  test::expect_golden("trace.txt", lines + trace.dump() + "\n");
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
