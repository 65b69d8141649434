// Golden files in tests/report/golden say what each format looks like. After a wanted change:
//   HARNESS_UPDATE_GOLDEN=1 build/release/tests/test_report     and look at the diff.
#include "report/show.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "golden.h"
#include "report/headline.h"
#include "report/scale.h"
#include "sample_results.h"

namespace harness {
namespace {

using samples::expect_golden;

std::string shown(const Result& result, Format format) {
  return show(result, summarise(result), format);
}

TEST(Show, Text) {
  expect_golden("everything.txt", shown(samples::everything(), Format::text));
  expect_golden("nothing_moved.txt", shown(samples::nothing_moved(), Format::text));
  expect_golden("unreliable.txt", shown(samples::unreliable(), Format::text));
  expect_golden("partial.txt", shown(samples::partial(), Format::text));
}
TEST(Show, Markdown) {
  expect_golden("everything.md", shown(samples::everything(), Format::md));
}
TEST(Show, Csv) {
  expect_golden("everything.csv", shown(samples::everything(), Format::csv));
}
TEST(Show, Json) {
  expect_golden("everything.json", shown(samples::everything(), Format::json));
}

TEST(ShowBreakdown, TextAndMarkdown) {
  Result result = samples::everything();
  samples::add_profiled_steps(result);
  expect_golden("breakdown.txt", show_breakdown(result, find_all(result), Format::text));
  expect_golden("breakdown.md", show_breakdown(result, find_all(result), Format::md));
  result.timeline.clear();
  expect_golden("no_breakdown.txt", show_breakdown(result, find_all(result), Format::text));
  for (const std::string& text :
       {show_breakdown(result, find_all(result), Format::text), show_breakdown(result, find_all(result), Format::md)}) {
    for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << text;
  }
}

TEST(Show, SettingsThatTheBackendIgnoresOrThatNobodyMadeAreNotListed) {
  Result result = samples::everything();
  for (const char* name : {"attention", "nccl_algo", "nccl_proto", "env", "threads"})
    result.variables.emplace_back(name);
  for (ResultCase& one : result.cases) {
    for (const char* value : {"fused", "default", "Simple", "{}", "3"}) one.settings.emplace_back(value);
  }
  const std::string on_cpu = shown(result, Format::text);
  EXPECT_NE(on_cpu.find("threads=3"), std::string::npos) << on_cpu;
  for (const char* name : {"attention=", "nccl_algo=", "nccl_proto=", "env="}) {
    EXPECT_EQ(on_cpu.find(name), std::string::npos) << name;
  }
  result.backend = "cuda";
  const std::string on_cuda = shown(result, Format::text);
  for (const char* text : {"attention=fused", "nccl_proto=Simple"}) {
    EXPECT_NE(on_cuda.find(text), std::string::npos) << text;
  }
  for (const char* name : {"nccl_algo=", "env=", "threads="}) EXPECT_EQ(on_cuda.find(name), std::string::npos) << name;
}

TEST(Show, LinesFitATerminal) {
  for (const Result& result : {samples::everything(), samples::nothing_moved(), samples::partial()}) {
    std::istringstream lines(shown(result, Format::text));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 140u) << line;
      for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << line;
    }
  }
}

TEST(Show, TheCpuBackendSaysSoAtOnce) {
  std::istringstream lines(shown(samples::nothing_moved(), Format::text));
  std::string first, second, third;
  std::getline(lines, first);
  std::getline(lines, second);
  std::getline(lines, third);
  EXPECT_NE(third.find("Backend cpu"), std::string::npos) << third;
}

TEST(Show, JsonHasFullPrecisionAndNulls) {
  const Result result = samples::partial();
  const Summary summary = summarise(result);
  const auto json = nlohmann::json::parse(show(result, summary, Format::json));
  EXPECT_EQ(json["cases"][2]["step_seconds"].get<double>(), summary.cases[2].step_seconds);
  EXPECT_EQ(json["cases"][2]["effect"]["ratio"].get<double>(), summary.cases[2].effect->ratio);
  EXPECT_TRUE(json["cases"][2]["mfu"].is_null());
  EXPECT_TRUE(json["cases"][2]["effect"]["low"].is_null());
  EXPECT_TRUE(json["cases"][0]["effect"].is_null());
  EXPECT_EQ(json["cases"][2]["settings"]["micro_batch_size"], "2");
  EXPECT_EQ(json["headline"], headline(result, summary));
}

TEST(Show, AnEmptyResultIsShownToo) {
  for (const Format format : {Format::text, Format::md, Format::csv, Format::json}) {
    EXPECT_FALSE(shown(Result{}, format).empty());
  }
}

TEST(Headline, SaysWhatIsProvenAndNoMore) {
  const auto said = [](const Result& result) { return headline(result, summarise(result)); };
  EXPECT_EQ(said(samples::nothing_moved()),
            "Nothing moved beyond 1 %: all 2 changes came out the same as the baseline.");
  EXPECT_EQ(said(samples::sweep({"a=1", "b=1"}, {1, 1, 1.05, 1.2})).substr(0, 80),
            "No change is proven faster than the baseline; the slowest: b=1, 20.0 % slower [1");
  EXPECT_EQ(said(samples::sweep({"a=1", "b=1"}, {1, 1, 1.0102, 1})),
            "Nothing is proven to move beyond 1 %: of 2 changes 1 is unresolved, 1 the same.");
  EXPECT_EQ(said(samples::sweep({}, {1, 1})), "Only the baseline was asked for: nothing to compare.");
  EXPECT_EQ(said(samples::sweep({"a=1"}, {1, 1, 0.5}, 1)), "Too few rounds for any verdict.");
  EXPECT_EQ(said(samples::unreliable()).substr(0, 66),
            "Unreliable: the control baseline_again came out 6.0 % slower [5.9 ");
  EXPECT_EQ(said(samples::partial()).substr(0, 26), "Partial (3 of 36 blocks). ");
}

TEST(Scales, FourDigitsInAUnitThatFitsTheSmallest) {
  const std::vector<double> seconds{0.0123456, 2.5};
  const Scale scale = scale_of_seconds(seconds);
  EXPECT_EQ(scale.unit, "ms");
  EXPECT_EQ(scale.print(0.0123456), "12.35");
  EXPECT_EQ(scale.print(2.5), "2500");
  EXPECT_EQ(scale.print(0.0009), "0.900");
  EXPECT_EQ(signed_percent(-0.00001), "0.0 %");
  EXPECT_EQ(signed_percent(-0.1234), "-12.3 %");
}

}  // namespace
}  // namespace harness
