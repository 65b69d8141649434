// Golden files in tests/report/golden define the output of each format. After an intended change, run
// HARNESS_UPDATE_GOLDEN=1 build/release/tests/test_report and look at the diff.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/summary.h"
#include "full_result.h"
#include "golden.h"
#include "report/document.h"
#include "report/page/page.h"
#include "support/errors.h"

namespace harness::report {
namespace {

using test::operations;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string shown_breakdown(const store::Result& result, Format format) {
  return write(breakdown_document(result, analysis::find_all(result), {.detail = Detail::full}), format);
}

std::string at_width(const store::Result& result, std::size_t width = 0) {
  Document document = show_document(result, analysis::summarise(result));
  arrange(document, {.width = width});
  return write_text(document, width == 0 ? 400 : width);
}

TEST(Show, Golden) {
  const store::Result everything = test::samples::everything();
  test::expect_golden("brief.txt", show(everything, analysis::summarise(everything), Format::text));
  test::expect_golden("everything.txt", shown(everything));
  test::expect_golden("everything.md", shown(everything, Format::md));
  test::expect_golden("everything.csv", shown(everything, Format::csv));
  test::expect_golden("everything.json", shown(everything, Format::json));
  test::expect_golden("nothing_moved.txt", shown(test::samples::nothing_moved()));
  test::expect_golden("unreliable.txt", shown(test::samples::unreliable()));
  store::Result resumed = test::samples::partial();
  resumed.sessions = 3;
  test::expect_golden("partial.txt", shown(resumed));
}

TEST(ShowBreakdown, TextAndMarkdown) {
  store::Result result = test::samples::everything();
  test::samples::add_profiled_steps(result);
  test::expect_golden("breakdown.txt", shown_breakdown(result, Format::text));
  test::expect_golden("breakdown.md", shown_breakdown(result, Format::md));
  result.timeline.clear();
  test::expect_golden("no_breakdown.txt", shown_breakdown(result, Format::text));
}

TEST(Show, SettingsAtTheirDefaultsAreNotListed) {
  store::Result result = test::samples::everything();
  for (const char* name : {"cuda_graph", "nccl_algo", "nccl_proto", "env", "threads"})
    result.variables.emplace_back(name);
  for (store::ResultCase& row : result.cases) {
    for (const char* value : {"false", "default", "Simple", "{}", "3"}) row.settings.emplace_back(value);
  }
  const std::string text = shown(result);
  for (const char* set : {"cuda_graph=false", "nccl_proto=Simple", "threads=3"}) EXPECT_THAT(text, HasSubstr(set));
  for (const char* name : {"nccl_algo=", "env="}) EXPECT_THAT(text, Not(HasSubstr(name))) << name;
}

// The baseline and the best case are shown by default.
TEST(ShowBreakdown, ShowsTheBestCaseUnlessOthersAreAskedFor) {
  store::Result result = test::samples::everything();
  test::samples::add_profiled_steps(result);
  analysis::Findings findings = analysis::find_all(result);
  ASSERT_EQ(findings.steps.size(), 2u);
  findings.steps.push_back(findings.steps[1]);
  findings.steps.back().case_index = 4;
  findings.best_case = 4;
  const std::string other = result.at(findings.steps[1]).name;
  const auto headings = [&](const ShownSteps& steps) {
    std::vector<std::string> names;
    for (const Section& section : breakdown_document(result, findings, steps).sections) {
      for (const Piece& piece : section.pieces) {
        if (const auto* heading = std::get_if<Subheading>(&piece)) names.push_back(heading->text);
      }
    }
    return names;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(headings({}), ElementsAre("baseline", result.case_at(4).name));
  EXPECT_THAT(headings({.cases = {other}}), ElementsAre("baseline", other));
  EXPECT_EQ(headings({.detail = Detail::full}).size(), findings.steps.size());
  EXPECT_THROW(headings({.cases = {"micro_batch_size=5"}}), Error);
  EXPECT_THAT(write_text(breakdown_document(result, findings, {.cases = {"baseline_again"}})),
              HasSubstr("The file has no profiled step of baseline_again.\n"));
}

// Findings on nodes are warnings; findings on one case are left to that case.
TEST(Show, SaysWhatDoctorFound) {
  store::Result result = test::samples::sweep({"precision=bf16"}, {1, 1, 1});
  result.doctor.findings = {
      {-1, "fail", "pcie.width", "node11", 1, "mlx5_2 runs on 8 of 16 PCIe lanes", "reseat it", "https://a"},
      {-1, "warn", "cpu.governor", "all 16", 16, "powersave", "set it", "https://b"},
      {-1, "unknown", "ib.flaps", "all 16", 16, "the kernel's log cannot be read", "", ""},
      {2, "fail", "env.devices", "node1", 1, "mlx4 fits nothing here", "", ""}};
  const analysis::Summary summary = analysis::summarise(result);
  const std::string text = write_text(show_document(result, summary), 400);
  EXPECT_THAT(text, HasSubstr("! doctor, fail pcie.width on node11: mlx5_2 runs on 8 of 16 PCIe lanes. What to do: "
                              "reseat it"));
  EXPECT_THAT(text, HasSubstr("! doctor, warn cpu.governor on all 16: powersave. What to do: set it"));
  EXPECT_THAT(text, Not(HasSubstr("ib.flaps")));
  EXPECT_THAT(text, Not(HasSubstr("mlx4")));
  const auto json = json_of(result)["doctor"];
  ASSERT_EQ(json.size(), 4u);
  EXPECT_TRUE(json[0]["case"].is_null());
  EXPECT_EQ(json[3]["case"], "precision=bf16");
  result.doctor.findings = std::vector<store::ResultFinding>(20, result.doctor.findings[1]);
  EXPECT_THAT(write_text(show_document(result, analysis::summarise(result)), 400),
              HasSubstr("! doctor found 12 more before the first round: `harness show FILE --format json` lists all"));
  EXPECT_EQ(json_of(result)["doctor"].size(), 20u);
}

TEST(Show, MfuAboveThePeakIsMarked) {
  store::Result result = test::samples::nothing_moved();
  for (store::ResultCase& row : result.cases) row.peak_flops_per_rank = 20e9;
  const std::string text = shown(result);
  EXPECT_THAT(text, HasSubstr(" % !  "));
  EXPECT_THAT(text, HasSubstr("! above the peak: "));
  EXPECT_THAT(shown(test::samples::nothing_moved()), Not(HasSubstr("above the peak")));
}

TEST(Show, SingleOperationsHaveNoNumbersOfTraining) {
  store::Result result = test::samples::sweep({"message_size=2 kB"}, {1, 1, 1.5});
  for (int c = 0; c < 3; ++c) result.points.push_back({c, "all_reduce", 10, c == 2 ? 2e3 : 1e3, 1.5, 0, ""});
  for (store::ResultCase& row : result.cases) {
    row.tokens_per_step = row.model_flop_per_step = row.noncausal_flop_per_step = row.hardware_flop_per_step = 0;
    row.micro_batches = 0;
  }
  const auto row = json_of(result)["cases"][2];
  for (const char* key : {"tokens_per_second", "mfu", "hfu", "flops_per_rank", "first_loss", "last_loss",
                          "tokens_per_step", "model_flop_per_step", "micro_batches"}) {
    EXPECT_TRUE(row[key].is_null()) << key << " " << row[key];
  }
  for (const char* word : {"tokens/s", "MFU"}) EXPECT_THAT(shown(result), Not(HasSubstr(word)));
}

TEST(Show, AnImpossibleCaseHasNoLayout) {
  store::Result result = test::samples::everything();
  store::ResultCase& impossible = result.cases[7];
  impossible.ranks = 0;  // as planned, see planned_result.cpp
  impossible.layout = program::Layout();
  const auto row = json_of(result)["cases"][7];
  for (const char* key : {"ranks_used", "tensor_parallel", "pipeline_parallel", "data_parallel", "goodput"})
    EXPECT_TRUE(row[key].is_null()) << key << " " << row[key];
}

TEST(Show, CasesThatFailedAlikeShareANoteAndTheHeadlineHasTheCause) {
  store::Result result = test::samples::sweep({"micro_batch_size=2"}, {1, 1, 0.9}, 2);  // blocks, but no verdict
  for (store::ResultCase& row : result.cases) {
    row.status = store::CaseStatus::failed;
    row.reason = "out of memory";
  }
  const std::string text = at_width(result);
  EXPECT_THAT(text, ::testing::StartsWith("Nothing could be compared: baseline failed: out of memory\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("\n[1] out of memory\n"), Not(HasSubstr("[2]"))));
}

TEST(Show, ALayoutHasItsShortNameInSentences) {
  const std::string layout = "layout={tensor_parallel: 2, pipeline_parallel: 1}";
  EXPECT_THAT(at_width(test::samples::sweep({layout}, {1, 1, 0.8})), HasSubstr("Fastest proven change: TP2, 20.0 %"));
  EXPECT_THAT(at_width(test::samples::sweep({layout}, {1, 1, 1.2})), HasSubstr("the slowest: TP2, 20.0 %"));
}

TEST(Show, AColumnThatThisTableLacksIsNamed) {
  const store::Result result = test::samples::nothing_moved();
  Document document = show_document(result, analysis::summarise(result));
  arrange(document, {.columns = {"busbw"}});
  EXPECT_THAT(write_text(document), HasSubstr("\n--columns busbw: not in this table.\n"));
}

TEST(Show, AnEmptyResultIsShownToo) {
  const std::string none = "Only the baseline was asked for: nothing to compare.";
  EXPECT_THAT(shown(store::Result{}), ::testing::StartsWith(none));
  EXPECT_THAT(shown(store::Result{}, Format::md), ::testing::StartsWith("**" + none));
  EXPECT_THAT(shown(store::Result{}, Format::csv), ::testing::StartsWith("case,"));
  EXPECT_TRUE(json_of(store::Result{})["cases"].empty());
}

// Several of NCCL's warnings have one name.
TEST(Show, AWarningOfNcclThatTheBaselineHasIsListedOnce) {
  store::Result result = test::samples::sweep({"precision=bf16"}, {1, 1, 1});
  for (const int c : {0, 2}) {
    for (const char* text : {"no GPUDirect RDMA", "an old driver"}) result.nccl_facts.push_back({c, "warning", text});
  }
  result.nccl_facts.push_back({2, "version", "2.28.8"});
  const Section section = nccl_section(result);
  EXPECT_EQ(std::get<Numbers>(section.pieces.front()).table.rows.size(), 3u);
}

TEST(Show, RatesOfAGpuAreCalledSo) {
  store::Result result = test::samples::nothing_moved();
  EXPECT_THAT(shown(result), HasSubstr("GFLOP/s/rank"));
  EXPECT_THAT(shown(result), Not(HasSubstr("/GPU")));
  EXPECT_TRUE(json_of(result)["cases"][0]["tokens_per_second_per_gpu"].is_null());
  result.backend = "cuda";
  const std::string text = shown(result);
  EXPECT_THAT(text, HasSubstr("tokens/s  tokens/s/GPU  GFLOP/s/GPU  "));
  EXPECT_THAT(text, Not(HasSubstr("/rank ")));
  const auto row = json_of(result)["cases"][0];
  EXPECT_DOUBLE_EQ(row["tokens_per_second_per_gpu"], row["tokens_per_second"].get<double>() / 4);
  EXPECT_DOUBLE_EQ(row["tflops_per_gpu"], row["flops_per_rank"].get<double>() / 1e12);
}

TEST(Show, TailsAreThereWhereThereAreEnoughSteps) {
  const store::Result few = test::samples::sweep({}, {1, 1}), many = test::samples::sweep({}, {1, 1}, 25);
  EXPECT_THAT(shown(few), Not(HasSubstr("p99")));
  EXPECT_TRUE(json_of(few)["cases"][0]["tails"]["p99"].is_null());
  EXPECT_THAT(shown(many), HasSubstr("step ms    p95    p99  "));
  EXPECT_NEAR(json_of(many)["cases"][0]["tails"]["p99"], 1.0, 0.01);
}

// The columns and the last line of nccl-tests, by size. A failed size keeps its row.
TEST(Show, SizesOfACollectiveAreListedAsNcclTestsDoes) {
  store::Result result = operations({"message_size=1 GB", "message_size=512 B"}, {1, 1, 100, 0.5}, 1.5);
  result.variables.emplace_back("precision");
  for (std::size_t c = 0; c < result.cases.size(); ++c) {
    result.cases[c].settings.emplace_back("fp32");
    if (c == 3) result.points[c].bytes = 512;
    result.points[c].count = static_cast<std::int64_t>(result.points[c].bytes) / 4;
  }
  for (store::ResultBlock& block : result.blocks) {
    if (block.case_index != 2 || block.round >= 2) continue;
    block.status = store::BlockStatus::failed;
  }
  test::expect_golden("sizes.txt", shown(result));
  const auto json = json_of(result);
  EXPECT_NEAR(json["average_bus_bytes_per_s"], 0.3852e9, 1e5);
  const auto& rates = json["cases"][2]["rates"];
  EXPECT_EQ(rates["errors"], 2);
  EXPECT_EQ(rates["count"], 250000000);
}

// Tables of sizes alone have no verdicts or intervals, so they cannot have too few rounds.
TEST(Show, WarnsOfNoRoundsForSizesAlone) {
  const auto with_two_rounds = [](const std::vector<std::string>& changes, const std::vector<double>& ratios) {
    store::Result result = operations(changes, ratios, 1.5);
    for (store::ResultBlock& block : result.blocks)
      if (block.round >= 2) block.status = store::BlockStatus::pending;
    return shown(result);
  };
  EXPECT_THAT(with_two_rounds({"message_size=1 GB"}, {1, 1, 1e6}), Not(HasSubstr("no verdict on")));
  EXPECT_THAT(with_two_rounds({"message_size=1 GB", "in_place=false"}, {1, 1, 1e6, 1}), HasSubstr("no verdict on"));
}

// The report on settings that are compared at several sizes of one operation.

// Halving-doubling is faster at 1 kB and slower at 1 GB; out of place changes nothing.
store::Result grid() {
  return test::operations(
      {"message_size=1 GB", "baseline_again at message_size=1 GB", "allreduce_algorithm=halving_doubling",
       "allreduce_algorithm=halving_doubling at message_size=1 GB", "in_place=false",
       "in_place=false at message_size=1 GB"},
      {1, 1, 1e4, 1e4, 0.8, 1.5e4, 1, 1e4}, 1.5);
}

// Rows are sizes and columns are settings. The headline counts sizes for each setting.
TEST(Grid, Golden) {
  test::expect_golden("grid.txt", shown(grid()));
}

TEST(Grid, TheCommandToRepeatItChoosesTheSameCases) {
  store::Result result = grid();
  result.config_text = "name: nccl\n";
  result.config_path = "nccl.yaml";
  const auto command = [&] { return std::get<Listing>(configuration_section(result).pieces.at(1)).text; };
  EXPECT_EQ(command(), "mpirun -np 4 harness sweep nccl.yaml");
  result.rounds = 18;
  result.extended = "12";
  EXPECT_EQ(command(), "mpirun -np 4 harness sweep nccl.yaml --rounds 18");
  result.extended.clear();
  result.argv = "harness sweep nccl.yaml --only in_place message_size allreduce_algorithm";
  EXPECT_EQ(command(),
            "mpirun -np 4 harness sweep nccl.yaml --only baseline 'message_size=1 GB' "
            "allreduce_algorithm=halving_doubling in_place=false");
}

// A change at another size of an operation is held against the baseline at this size, and a size against none.
TEST(Grid, ABreakdownComparesStepsOfOneSize) {
  store::Result result = grid();
  for (const int c : {0, 2, 5}) {
    result.timeline.push_back(test::samples::interval(0, 0, "all_reduce", "world", "finish", 0, c + 1));
    result.timeline.back().case_index = c;
  }
  const std::string text = shown_breakdown(result, Format::text);
  const auto line_of = [&](const std::string& name) {
    const std::size_t from = text.find("\nstep, profiled", text.find("\n" + name + "\n"));
    return text.substr(from + 1, text.find('\n', from + 1) - from - 1);
  };
  EXPECT_THAT(line_of("message_size=1 GB"), ::testing::MatchesRegex("step, profiled +3000.00 +100.0 %"));
  EXPECT_THAT(line_of("allreduce_algorithm=halving_doubling at message_size=1 GB"),
              ::testing::MatchesRegex("step, profiled +3000.00 +6000.00 +.3000.00 +100.0 %"));
}

TEST(Grid, ErrorsOfTheControlCount) {
  store::Result result = grid();
  test::samples::block_of(result, 2, 3)->status = store::BlockStatus::failed;
  const Table table = case_table(result, analysis::summarise(result));
  const auto errors = static_cast<std::size_t>(
      std::ranges::find(table.columns, std::string_view("errors"), &Table::Column::heading) - table.columns.begin());
  EXPECT_EQ(table.rows[0][errors].text, "0");
  EXPECT_EQ(table.rows[1][errors].text, "1");
}

TEST(Grid, ANarrowTerminalHasTheVerdicts) {
  const std::string text = at_width(grid(), 80);
  EXPECT_LE(widest_line(text), 80u) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("halving_doubling change"), HasSubstr("Left out to fit: errors, baseline us"),
                          HasSubstr("faster -20.0 % [-20.1 %, -19.9 %]"), HasSubstr("slower +50.0 %")));
  const store::Result three = test::operations(
      {"message_size=1 GB", "baseline_again at message_size=1 GB", "allreduce_algorithm=halving_doubling",
       "allreduce_algorithm=halving_doubling at message_size=1 GB", "in_place=false",
       "in_place=false at message_size=1 GB", "allreduce_algorithm=halving_doubling + in_place=false",
       "allreduce_algorithm=halving_doubling + in_place=false at message_size=1 GB"},
      {1, 1, 1e4, 1e4, 0.8, 1.5e4, 1, 1e4, 0.8, 1.5e4}, 1.5);
  EXPECT_THAT(at_width(three, 100), AllOf(HasSubstr("  halving_doubling + out of place change\n"),
                                          HasSubstr("faster -20.0 %"), Not(HasSubstr("-19.9 %"))));
}

TEST(Show, SizesHaveTheirAverageOnANarrowTerminalToo) {
  const store::Result sizes = operations({"message_size=1 GB"}, {1, 1, 100}, 1.5);
  EXPECT_THAT(at_width(sizes, 40), AllOf(HasSubstr("Left out to fit: errors"), HasSubstr("\nAverage bus bandwidth")));
}

TEST(Grid, ColumnsAreAskedForBySettingOrUnit) {
  const auto headings = [](const std::string& column) {
    const store::Result result = grid();
    Document document = show_document(result, analysis::summarise(result));
    arrange(document, {.columns = {column}});
    const std::string text = write_text(document, 400), from_size = text.substr(text.find("    size B"));
    return from_size.substr(0, from_size.find('\n'));
  };
  EXPECT_EQ(headings("baseline"), "    size B  baseline us  baseline GB/s");
  EXPECT_EQ(headings("change"), "    size B            halving_doubling change          out of place change");
  EXPECT_EQ(headings("verdict"), headings("change"));
  EXPECT_EQ(headings("busbw"), "    size B  baseline GB/s  halving_doubling GB/s  out of place GB/s");
  EXPECT_THAT(test::error_of([&] { headings("of place changed"); }), HasSubstr("there is no such column"));
}

TEST(Grid, ALongSettingHasAShortName) {
  store::Result result = grid();
  for (const std::size_t c : {6u, 7u}) {
    result.cases[c].variable = "env";
    result.cases[c].value = "{NCCL_IB_QPS_PER_CONNECTION: 4}";
  }
  EXPECT_THAT(at_width(result), HasSubstr("NCCL_IB_QPS_PER_CONNECTION=4 us"));
}

TEST(Grid, ACaseThatFailedHasItsReasonAsANote) {
  store::Result result = grid();
  result.cases[5].status = store::CaseStatus::failed;
  result.cases[5].reason = "rank 1 said no";
  for (store::ResultBlock& block : result.blocks) {
    if (block.case_index == 5) block.status = store::BlockStatus::failed;
  }
  EXPECT_THAT(at_width(result), AllOf(HasSubstr("failed [1]"), HasSubstr("[1] rank 1 said no")));
}

TEST(Grid, JsonHasEveryCaseAndThePageEverySetting) {
  const store::Result result = grid();
  const auto json = json_of(result);
  ASSERT_EQ(json["cases"].size(), result.cases.size());
  for (std::size_t c = 0; c < result.cases.size(); ++c) EXPECT_EQ(json["cases"][c]["name"], result.cases[c].name);
  EXPECT_EQ(json["cases"][2]["reference"], nullptr);
  EXPECT_EQ(json["cases"][3]["reference"], "message_size=1 GB");
  EXPECT_EQ(json["cases"][4]["reference"], "baseline");
  EXPECT_EQ(json["cases"][5]["reference"], "message_size=1 GB");
  EXPECT_EQ(json["cases"][5]["judgement"], "slower");
  ASSERT_EQ(json["levels"].size(), 2u);
  EXPECT_EQ(json["levels"][1]["reference"], "message_size=1 GB");
  EXPECT_THAT(page::page(page::make_report(result, analysis::find_all(result))),
              AllOf(HasSubstr("halving_doubling change"), HasSubstr("out of place change"),
                    HasSubstr("in_place=false at message_size=1 GB")));
}

}  // namespace
}  // namespace harness::report
