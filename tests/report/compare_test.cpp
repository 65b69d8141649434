#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "full_result.h"
#include "golden.h"

namespace harness::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

using Files = test::ComparedFiles;

Files two_files() {
  Files files;
  files.add("monday.h5", test::samples::everything());
  store::Result friday = test::samples::everything();
  friday.identity = {{"onednn", "3.1"}};
  friday.environment = {{"NCCL_DEBUG", "IN\x1b[31mFO"}};
  friday.seed = 2;
  for (auto& steps : friday.step_seconds) steps[2] *= 3;  // one slow step a block does not move the median
  files.add("friday.h5", friday, 1.04);
  files.compare(1);
  return files;
}

Files six_files() {
  Files files;
  for (const double factor : {1.0, 1.004, 0.997, 0.9, 0.904, 0.897}) {
    const char* side = factor > 0.95 ? "a" : "b";
    files.add(fmt::format("{}{}.h5", side, files.results.size()), test::samples::with_timeline(), factor);
  }
  files.compare(3);
  return files;
}

TEST(Compare, Golden) {
  const Files two = two_files();
  test::expect_golden("compare.txt", show(two.report, Format::text));
  test::expect_golden("compare.md", show(two.report, Format::md));
  test::expect_golden("compare.json", show(two.report, Format::json));
  test::expect_golden("compare_runs.txt", show(six_files().report, Format::text));
}

TEST(Compare, SingleOperationsHaveNoNumbersOfTraining) {
  Files files;
  for (const char* name : {"a.h5", "b.h5"}) files.add(name, test::operations({"message_size=1 GB"}, {1, 1, 1e4}, 1.5));
  files.compare(1);
  EXPECT_THAT(show(files.report, Format::text), Not(HasSubstr("MFU")));
  const Json side = Json::parse(show(files.report, Format::json))["comparison"]["cases"][0]["a"];
  EXPECT_TRUE(side["mfu"].is_null() && side["tokens_per_second"].is_null()) << side;
}

TEST(Compare, Reproduction) {
  Files files;
  files.add("old.h5", test::samples::sweep({"precision=bf16", "micro_batch_size=2"}, {1, 1, 0.8, 0.9}));
  files.add("new.h5", test::samples::sweep({"precision=bf16", "micro_batch_size=2"}, {1, 1, 1.2, 0.92}), 0.3);
  files.reproduce();
  test::expect_golden("reproduce.txt", show(files.report, Format::text));
  const auto json = Json::parse(show(files.report, Format::json));
  EXPECT_EQ(json["reproduction"]["changes"][0]["reproduced"], "opposite");
}

TEST(Compare, WhatFailedLaterIsNotReproduced) {
  Files files;
  store::Result failed = test::samples::sweep({"precision=bf16"}, {1, 1, 0.8});
  failed.cases[2].status = store::CaseStatus::failed;
  files.add("old.h5", failed);
  files.add("new.h5", test::samples::sweep({"precision=bf16"}, {1, 1, 0.8}));
  files.reproduce();
  const std::string text = show(files.report, Format::text);
  EXPECT_THAT(text, HasSubstr("Of 1 change tried on both sides: 1 undecided."));
  EXPECT_THAT(text, HasSubstr("  failed -20.0 %"));
}

TEST(Compare, WhatToKnowOfTheVerdictComesBeforeTheTable) {
  Files files;
  files.add("a.h5", test::samples::unreliable());
  files.find_reservations();
  files.report.answer = analysis::compare_sides(files.report.files, files.report.files);
  const std::string text = show(files.report, Format::text);
  EXPECT_LT(text.find("is unreliable"), text.find("B step"));
  EXPECT_LT(text.find("The same run is on both sides"), text.find("B step"));
  EXPECT_LT(text.find("A repeated run may differ"), text.find("B step"));
}

TEST(Compare, SaysWhatFailedAndKeepsTheIntervalOnATerminal) {
  Files files;
  store::Result failed = test::samples::sweep({"micro_batch_size=2", "micro_batch_size=4"}, {1, 1, 0.8, 1});
  failed.cases[2].status = store::CaseStatus::failed;
  failed.cases[3].status = store::CaseStatus::impossible;
  for (store::ResultBlock& block : failed.blocks) {
    if (block.case_index == 3) block.status = store::BlockStatus::pending;
  }
  files.add("a.h5", failed);
  files.add("b.h5", failed);
  files.compare(1);
  Document document = compare_document(files.report, false);
  arrange(document, {.width = 80});
  const std::string text = write_text(document, 80);
  EXPECT_LT(text.find("! 1 case failed in b.h5"), text.find("B step"));
  EXPECT_THAT(text, AllOf(HasSubstr("95 % interval  verdict"), HasSubstr("  impossible\n")));
}

TEST(Compare, OfWhatOneSideLacksAFewLinesAreEnough) {
  Files files;
  std::vector<std::string> changes;
  for (int i = 2; i < 14; ++i) changes.push_back(fmt::format("micro_batch_size={}", i));
  files.add("a.h5", test::samples::sweep(changes, std::vector<double>(14, 1)));
  files.add("b.h5", test::samples::sweep({}, {1, 1}));
  files.compare(1);
  EXPECT_THAT(write_text(compare_document(files.report, false)),
              AllOf(HasSubstr("micro_batch_size=9 is only in"), Not(HasSubstr("micro_batch_size=10 is only in")),
                    HasSubstr("Not compared: 4 more: -v shows them.")));
  EXPECT_THAT(write_text(compare_document(files.report, true)), HasSubstr("micro_batch_size=13 is only in a.h5"));
}

TEST(Compare, AHistoryColoursWhatIsProvenAndDoesWithoutCountsFirst) {
  Files files;
  files.add("a.h5", test::samples::nothing_moved());
  files.add("b.h5", test::samples::nothing_moved());
  analysis::History history;
  history.files = files.report.files;
  const analysis::ChangePoint shift{.before = 0, .run = 1, .ratio = 1.1};
  for (const auto verdict : {analysis::Verdict::slower, analysis::Verdict::faster, analysis::Verdict::unresolved}) {
    history.cases.push_back({.name = "x", .seconds = {1, 2}, .largest = shift, .verdict = verdict});
  }
  files.report.answer = history;
  Document document = compare_document(files.report, false);
  arrange(document, {.width = 60});
  test::expect_golden("history_narrow.txt", write_text(document, 120, true));
  test::expect_golden("history.txt", show(files.report, Format::text));
}

// The baselines stay. The others are the rows that moved most, in the order of the file.
TEST(Compare, AScreenHasTheEightRowsThatMovedMost) {
  std::vector<std::string> changes;
  std::vector<double> ratios{1, 1}, later{1, 1};
  for (int i = 2; i < 14; ++i) {
    changes.push_back(fmt::format("micro_batch_size={}", i));
    ratios.push_back(0.9);
    later.push_back(i % 2 == 0 ? 0.9 : 0.9 + 0.02 * i);
  }
  Files files;
  files.add("a.h5", test::samples::sweep(changes, ratios));
  files.add("b.h5", test::samples::sweep(changes, later));
  files.compare(1);
  for (int i = 0; i < 10; ++i)
    files.report.differences.push_back({"identity", fmt::format("library{}", i), {"1", "2"}});
  const auto rows_of = [&](bool whole) {
    std::vector<std::string> rows;
    const Document document = compare_document(files.report, whole);
    for (const auto& row : std::get<Numbers>(document.sections[1].pieces[3]).table.rows) rows.push_back(row[0].text);
    return rows;
  };
  EXPECT_THAT(rows_of(false), ::testing::ElementsAre("baseline", "baseline_again", "micro_batch_size=3",
                                                     "micro_batch_size=5", "micro_batch_size=7", "micro_batch_size=9",
                                                     "micro_batch_size=11", "micro_batch_size=13"));
  EXPECT_EQ(rows_of(true).size(), 14u);
  const std::string screen = write_text(compare_document(files.report, false));
  EXPECT_THAT(screen, HasSubstr("The rows that moved most; 6 more rows that moved less or not: -v shows them.\n"));
  EXPECT_THAT(screen, HasSubstr("- 2 more: -v shows them\n"));
  EXPECT_THAT(write_text(compare_document(files.report, true)), Not(HasSubstr("-v")));
}

// Pools a.h5, b.h5 and c.h5, one day apart. result_of(run): of 0, 1 and 2.
template <class ResultOf>
Files pooled(const ResultOf& result_of) {
  Files runs;
  for (int run = 0; run < 3; ++run) {
    store::Result result = result_of(run);
    result.created = fmt::format("2026-01-0{}T03:00:00Z", run + 1);
    runs.add(fmt::format("{}.h5", static_cast<char>('a' + run)), std::move(result));
  }
  runs.pool();
  return runs;
}

// One change that is faster in all runs, one whose runs disagree, one that failed once, and one missing in the last
// run.
Files three_runs() {
  return pooled([](int run) {
    const double faster = 0.9 + 0.002 * run, restless = 0.95 + 0.05 * run;
    std::vector<std::string> changes{"micro_batch_size=2", "overlap_grad_reduce=false", "precision=bf16"};
    if (run < 2) changes.emplace_back("layout={tensor_parallel: 2}");
    store::Result result = test::samples::sweep(changes, {1, 1.0005, faster, restless, 1.3, 1.5});
    result.identity = {{"driver", run == 2 ? "580" : "570"}};
    result.seed = static_cast<std::uint64_t>(run + 1);
    if (run == 1) {
      result.cases[4].status = store::CaseStatus::failed;
      result.cases[4].reason = "rank 2 on node7: worker killed by signal 9";
    }
    return result;
  });
}

TEST(Pooled, Golden) {
  const Files runs = three_runs();
  test::expect_golden("pooled.txt", show(runs.report, Format::text));
  test::expect_golden("pooled.md", show(runs.report, Format::md));
  test::expect_golden("pooled.json", show(runs.report, Format::json));
}

TEST(Pooled, WhatFailedInAllRunsIsNotTheFastestChange) {
  const Files runs = pooled([](int) {
    store::Result result = test::samples::sweep({"precision=bf16", "micro_batch_size=2"}, {1, 1, 0.8, 0.9});
    result.cases[2].status = store::CaseStatus::failed;
    return result;
  });
  EXPECT_THAT(show(runs.report, Format::text), HasSubstr("Fastest proven change: micro_batch_size=2,"));
}

TEST(Pooled, AnotherTrainingIsNoProvenChange) {
  const auto headline_of = [](const std::vector<std::string>& changes, const std::vector<double>& ratios) {
    const Files runs = pooled([&](int) {
      store::Result result = test::samples::sweep(changes, ratios);
      result.cases[2].tokens_per_step *= 2;
      return result;
    });
    return std::get<Paragraph>(compare_document(runs.report, true).sections[1].pieces[0]).text;
  };
  const std::string both = headline_of({"global_batch_size=32", "micro_batch_size=2"}, {1, 1, 1.6, 0.9});
  EXPECT_THAT(both, HasSubstr("Fastest proven change: micro_batch_size=2,"));
  EXPECT_THAT(both, HasSubstr(" Another training, per token: global_batch_size=32 "));
  const std::string alone = headline_of({"global_batch_size=32"}, {1, 1, 1.6});
  EXPECT_THAT(alone, HasSubstr("which agree. Another training, per token: global_batch_size=32"));
  EXPECT_THAT(alone, Not(HasSubstr("proven change:")));
}

TEST(Pooled, AMovedControlComesFirst) {
  const Files runs = pooled([](int run) {
    return test::samples::sweep({"precision=bf16"}, {1, 1.06 + 0.001 * run, 0.9});
  });
  const std::string text = show(runs.report, Format::text);
  EXPECT_THAT(text, HasSubstr("3 runs of one configuration, which agree. Unreliable: over the runs the control "
                              "baseline_again took 6.1 % more "
                              "time\n  ["));
  EXPECT_LT(text.find("! b.h5 is unreliable: its control"), text.find("run 1"));
  EXPECT_EQ(Json::parse(show(runs.report, Format::json))["pool"]["control_moved"], true);
}

}  // namespace
}  // namespace harness::report
