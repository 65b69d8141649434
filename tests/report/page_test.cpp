#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <regex>
#include <set>

#include "base/units.h"
#include "full_result.h"
#include "golden.h"
#include "report/document.h"
#include "report/page/page.h"

// The page is complete and self-contained, and no text of a result file can become markup in it. Missing data shows as
// missing, in every format.

namespace harness::page {

using report::escaped_markup;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

report::Document report_of(const store::Result& result) {
  return make_report(result, analysis::find_all(result));
}
std::string page_of(const store::Result& result) {
  return page(report_of(result));
}

// Returns the first XML error of a page, "" if none: tags that do not match, attributes unquoted or given twice, stray
// markup, control characters. Sufficient for our pages only.
std::string fault_of(const std::string& text) {
  std::vector<std::string> open;
  std::set<std::string> ids;
  const std::regex tag(R"(<(/?)([A-Za-z][A-Za-z0-9]*)((?:\s+[A-Za-z][A-Za-z0-9:-]*="[^"<]*")*)\s*(/?)>)");
  const std::regex attribute(R"(([A-Za-z][A-Za-z0-9:-]*)="([^"<]*)\")");
  std::size_t at = text.find('\n') + 1;
  if (text.substr(0, at) != "<!DOCTYPE html>\n") return "no doctype";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') return "a control character";
  }
  while (true) {
    const std::size_t next = text.find('<', at);
    const std::string between = text.substr(at, next == std::string::npos ? next : next - at);
    const bool in_style = !open.empty() && open.back() == "style";
    if (!in_style && std::regex_search(between, std::regex("&(?!(amp|lt|gt|quot|#39);)")))
      return "a bare &: " + between;
    if (next == std::string::npos) break;
    const std::string head = text.substr(next, std::min<std::size_t>(text.find('>', next) + 1 - next, 100000));
    std::smatch found;
    if (!std::regex_match(head, found, tag)) return "not a tag: " + head.substr(0, 200);
    const std::string attributes = found[3];
    std::set<std::string> names;
    for (std::sregex_iterator it(attributes.begin(), attributes.end(), attribute), end; it != end; ++it) {
      if (!names.insert((*it)[1]).second) return "an attribute twice: " + head;
      if ((*it)[1] == "id" && !ids.insert((*it)[2]).second) return "an id twice: " + head;
    }
    if (found[1] == "/") {
      if (open.empty() || open.back() != found[2]) return "closes what is not open: " + head;
      open.pop_back();
    } else if (found[4] != "/") {
      open.push_back(found[2]);
    }
    at = next + head.size();
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

TEST(Page, IsWellFormedWhateverTheResult) {
  for (const store::Result& result :
       {store::Result{}, test::samples::full(), test::samples::everything(), test::samples::nothing_moved(),
        test::samples::unreliable(), test::samples::partial(), test::samples::full(test::samples::hostile)}) {
    EXPECT_EQ(fault_of(page_of(result)), "");
  }
}

TEST(Page, FoldsATableWithAllThatExplainsIt) {
  store::Result result = test::samples::nothing_moved();
  EXPECT_THAT(page_of(result), HasSubstr("<details><summary>All cases</summary>"));
  result.cases[2].status = store::CaseStatus::failed;
  result.cases[2].reason = "rank 1 said no";
  EXPECT_THAT(page_of(result), Not(HasSubstr("<summary>All cases")));
}

// Returns the figure with this id; "" if the page has none.
std::string figure_in(const std::string& text, const std::string& id) {
  const std::size_t begin = text.find("<figure id=\"" + id + "\">");
  return begin == std::string::npos ? "" : text.substr(begin, text.find("</figure>", begin) - begin);
}

TEST(Page, HasEverySectionAndChart) {
  const std::string text = page_of(test::samples::full());
  for (const std::string id : {"changes", "scaling-section", "losses", "timeline", "stragglers", "nccl", "environment",
                               "warnings", "configuration"}) {
    EXPECT_THAT(text, AllOf(HasSubstr("<h2 id=\"" + id + "\">"), HasSubstr("<a href=\"#" + id + "\">")));
  }
  for (const char* id : {"tornado", "scaling", "timeline-baseline", "timeline-best", "late-ranks"}) {
    EXPECT_THAT(figure_in(text, id), AllOf(HasSubstr("<figcaption>"), HasSubstr("<svg"), HasSubstr("role=\"img\""),
                                           HasSubstr("<title"), HasSubstr("<desc")))
        << id;
  }
}

// Single collectives: bandwidth by size, and no training metrics.
TEST(Page, OfCollectivesHasBandwidthAndNoMfu) {
  store::Result result =
      test::samples::sweep({"message_size=2 kB", "message_size=1 GB", "collective=all_gather"}, {1, 1, 1.5, 100, 0.5});
  for (int c = 0; c < 5; ++c) {
    constexpr double bytes[] = {1e3, 1e3, 2e3, 1e9, 1e3};
    result.points.push_back({c, c == 4 ? "all_gather" : "all_reduce", 10, bytes[c], c == 4 ? 0.75 : 1.5, 4e9, "sheet"});
  }
  for (store::ResultCase& row : result.cases) {
    row.tokens_per_step = row.model_flop_per_step = row.noncausal_flop_per_step = row.hardware_flop_per_step = 0;
    row.variable = row.name.substr(0, row.name.find('='));
  }
  test::samples::add_profiled_steps(result);
  const std::string text = page_of(result);
  EXPECT_EQ(fault_of(text), "");
  EXPECT_THAT(figure_in(text, "bandwidth"), AllOf(HasSubstr("all_gather"), HasSubstr("limit 4"), HasSubstr("At most 1"),
                                                  HasSubstr("class=\"reference\""), HasSubstr("logarithmic")));
  EXPECT_THAT(text, HasSubstr("time per byte on the bus"));
  for (const char* never : {"Where the MFU", "MFU</td>", "tokens per second", "Worth trying", "id=\"losses\""})
    EXPECT_THAT(text, Not(HasSubstr(never)));
}

TEST(Page, NeedsNothingFromElsewhere) {
  const std::string text = page_of(test::samples::full());
  for (const char* bad : {"http:", "https:", "src=", "url(", "@import", "<script", "<link", "<iframe", "<img",
                          "<object", "style=\"", "javascript:", "\"data:", "image/"}) {
    EXPECT_THAT(text, Not(HasSubstr(bad)));
  }
  EXPECT_THAT(text, HasSubstr("Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline';"));
  for (std::size_t at = 0; (at = text.find("href=\"", at)) != std::string::npos; ++at) EXPECT_EQ(text[at + 6], '#');
}

TEST(Tornado, FromFastestToSlowestWithoutWhatWasNotHonoured) {
  const store::Result result = test::samples::full();
  const auto figure = tornado(result, analysis::summarise(result));
  ASSERT_TRUE(figure);
  const auto at = [&](const std::string& name) {
    return figure->drawing.find(">" + escaped_markup(report::short_name(name)) + "</div>");
  };
  // Case 3 was not honoured, 6 failed, 7 is impossible.
  EXPECT_EQ(at(result.cases[3].name), std::string::npos);
  EXPECT_EQ(at(result.cases[7].name), std::string::npos);
  for (const std::size_t other : {1U, 2U, 5U}) EXPECT_LT(at(result.cases[4].name), at(result.cases[other].name));
  for (const std::size_t other : {1U, 2U, 4U, 5U}) EXPECT_GT(at("ranks=2"), at(result.cases[other].name));
  EXPECT_THAT(page_of(result), HasSubstr("pipeline_parallel 8 needs 8 ranks"));
}

TEST(Timeline, ManyOperationsStaySmallAndKeepTheirPlace) {
  store::Result result = test::samples::full();
  result.timeline.clear();
  for (int i = 0; i < 200000; ++i) {
    const char* kind = i % 2 == 0 ? "matmul" : "attention";
    result.timeline.push_back(test::samples::interval(0, 0, i, kind, 1e-6 * i, 1e-6 * (i + 1)));
  }
  const auto figure = timeline_chart(analysis::drawn_step(result, 0), "t", "", 0.2);
  ASSERT_TRUE(figure);
  EXPECT_LT(figure->drawing.size(), 100000u);
  // Two kinds, one in each half of a lane: two runs of a thousand cells.
  result.timeline = {test::samples::interval(0, 0, 0, "matmul", 0, 0.5),
                     test::samples::interval(0, 0, 1, "adamw", 0.5, 1)};
  const auto halves = timeline_chart(analysis::drawn_step(result, 0), "t", "", 1);
  EXPECT_THAT(halves->drawing, HasSubstr(R"(<path class="k-matmul" d="M0 0h1000v1h-1000z"/>)"));
  EXPECT_THAT(halves->drawing, HasSubstr(R"(<path class="k-optimizer" d="M1000 0h1000v1h-1000z"/>)"));
}

TEST(Timeline, WaitingHasAColourOfItsOwn) {
  store::Result result = test::samples::full();
  store::ResultInterval row = test::samples::interval(0, 0, 0, "all_reduce", 0, 1);
  row.stream = "data";
  row.waiting_s = 0.25;
  row.bubble_s = 0.25;
  result.timeline = {row};
  const auto figure = timeline_chart(analysis::drawn_step(result, 0), "t", "", 1);
  ASSERT_TRUE(figure);
  EXPECT_THAT(figure->drawing, HasSubstr(R"(<path class="k-waiting" d="M0 0h1000v1h-1000z"/>)"));
  EXPECT_THAT(figure->drawing, HasSubstr(R"(<path class="k-data" d="M1000 0h1000v1h-1000z"/>)"));
  EXPECT_THAT(figure->caption, HasSubstr("waiting included"));
}

TEST(LateRanks, AreDrawnByNodeAndGpu) {
  store::Result result;
  for (int rank = 0; rank < 4; ++rank) result.rank_table.push_back({rank, rank % 2, rank / 2, "", "", 8, 1, 0});
  const report::Figure figure = late_ranks_chart(result, {0, -0.01, 0.07, NAN});
  EXPECT_THAT(figure.drawing, HasSubstr(R"(<path class="h0" d="M0 0h2v1h-2z"/>)"));
  EXPECT_THAT(figure.drawing, HasSubstr(R"(<path class="h3" d="M0 1h1v1h-1z"/>)"));
}

TEST(WaterfallChart, HasABarForEveryPartWithItsTimeAndItsLimit) {
  analysis::Waterfall bars;
  bars.mfu = 0.4;
  bars.step_s = 0.1;
  bars.gpu_utilisation = 0.99;
  bars.bars = {{"matrix products below peak", Part::matrix_products, 0.35, 0.05, 0.02, "peak FLOP/s"},
               {"exposed data communication", Part::data, 0.25, 0.025, std::nullopt, ""}};
  const report::Figure figure = waterfall_chart(bars, "w", "baseline");
  EXPECT_THAT(figure.drawing, AllOf(HasSubstr("matrix products below peak"), HasSubstr("35.0 points"),
                                    HasSubstr("50.00 ms, limit 20.00 ms (peak FLOP/s)"), HasSubstr("40.0 %"),
                                    HasSubstr("<small>25.00 ms</small>")));  // an unknown limit is omitted, not 0
  EXPECT_THAT(figure.caption, HasSubstr("GPU utilisation of 99 %"));
}

TEST(Escape, CleansAndEscapes) {
  EXPECT_EQ(escaped_markup("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(escaped_markup("x\x1b[31m\x07\x7f y\n\tz"), "x[31m y\n\tz");
  EXPECT_EQ(escaped_markup("\xff\xc0\xaf\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(escaped_markup("a\u202Eb\u200Bc\u2066d\u0085e\uFEFF"), "abcde");
  EXPECT_EQ(escaped_markup("müß 漢 😀"), "müß 漢 😀");
  EXPECT_EQ(report::inline_markdown("a|b `c` [d](e) <f> & *g*\n"), "a\\|b \\`c\\` \\[d\\](e) &lt;f> &amp; \\*g\\* ");
}

TEST(Axis, TicksAreRound) {
  const Axis axis = round_axis(-0.213, 0.37, 6, {});
  EXPECT_NEAR(axis.low, -0.3, 1e-12);
  EXPECT_NEAR(axis.high, 0.4, 1e-12);
  EXPECT_EQ(axis.ticks.size(), 8u);
  EXPECT_NEAR(axis.at(axis.low), axis.margin, 1e-12);
  EXPECT_NEAR(axis.at(5), 1 - axis.margin, 1e-12);  // values beyond the range are at the edge
  for (const double range : {0.0, std::nan(""), HUGE_VAL}) EXPECT_LE(linear_axis(0, range, 5, {}).ticks.size(), 20u);
}

// HARNESS_UPDATE_GOLDEN=1 rewrites it.
TEST(Markdown, Golden) {
  const store::Result result = test::samples::full();
  analysis::Findings findings = analysis::find_all(result);
  findings.cost = analysis::estimate_cost(result, findings.summary, {2.5, "USD", 300e9});
  const std::string text =
      std::regex_replace(report::write_markdown(make_report(result, findings)), std::regex("[0-9]+"), "#");
  test::expect_golden("report.md", text);
}

// An unknown number is left out or called unknown, whatever data is missing.
TEST(NotANumber, IsNeverPrinted) {
  constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
  using Change = std::function<void(store::Result&)>;
  const auto all_cases = [](double store::ResultCase::*member, double value) {
    return [=](store::Result& result) {
      for (store::ResultCase& row : result.cases) row.*member = value;
    };
  };
  const std::vector<Change> changes{
      [](store::Result&) {},
      [](store::Result& result) {
        for (store::ResultBlock& block : result.blocks) block.status = store::BlockStatus::pending;
      },
      [](store::Result& result) {
        for (store::ResultBlock& block : result.blocks) {
          if (block.case_index < 2) block.status = store::BlockStatus::failed;
        }
      },
      [](store::Result& result) {
        for (store::ResultCase& row : result.cases) row.status = store::CaseStatus::impossible;
      },
      [](store::Result& result) { result.rounds = 1; },
      [](store::Result& result) { result.splits.clear(); },
      [](store::Result& result) { result.operations.clear(); },
      [](store::Result& result) { result.losses.clear(); },
      [](store::Result& result) { result.looks = "5,8,12"; },
      all_cases(&store::ResultCase::peak_flops_per_rank, 0),
      all_cases(&store::ResultCase::tokens_per_step, 0),
      all_cases(&store::ResultCase::model_flop_per_step, 0),
      all_cases(&store::ResultCase::hardware_flop_per_step, nothing),
      all_cases(&store::ResultCase::planned_memory_bytes, 0),
  };
  const auto found_in = [](const std::string& text) {
    const auto is_letter = [&](std::size_t at) { return at < text.size() && std::isalpha(text[at] & 0x7f) != 0; };
    for (const char* word : {"nan", "inf"}) {
      for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 3)) {
        if (is_letter(at - 1) || is_letter(at + 3)) continue;
        return text.substr(at < 200 ? 0 : at - 200, 400);
      }
    }
    return std::string();
  };
  for (const store::Result& sample : {test::samples::full(), test::samples::everything(), test::samples::partial()}) {
    for (std::size_t i = 0; i < changes.size(); ++i) {
      store::Result result = sample;
      changes[i](result);
      SCOPED_TRACE(i);
      const analysis::Findings findings = analysis::find_all(result);
      EXPECT_EQ(found_in(page(make_report(result, findings))), "");
      EXPECT_EQ(found_in(report::write(report::breakdown_document(result, findings), report::Format::text)), "");
      for (const report::Format format : {report::Format::text, report::Format::csv, report::Format::json})
        EXPECT_EQ(found_in(report::show(result, findings.summary, format)), "");
    }
  }
}

}  // namespace

}  // namespace harness::page
