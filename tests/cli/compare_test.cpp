// compare, in-process, on files written for the test.
#include <fmt/ranges.h>

#include <limits>
#include <tuple>

#include "said.h"

namespace harness::cli {
namespace {

// Verbs that compare files use and name the confidence that the files declare; of several, the strictest.
TEST_F(Readers, TheDeclaredConfidenceIsNamed) {
  const auto declared = [&](const std::string& name, double confidence) {
    store::Result result = test::samples::sweep({"micro_batch_size=2"}, {1, 1, 0.9});
    result.confidence = confidence;
    return write(name, result);
  };
  const auto usual = declared("usual.h5", 0.95), strict = declared("strict.h5", 0.99),
             other = declared("other.h5", 0.99);
  for (const auto& arguments : Commands{{"compare", strict, usual},
                                        {"compare", "--reproduce", strict, other},
                                        {"show", strict},
                                        {"show", strict, "--cost", "2.5", "--run-tokens", "1e9"}}) {
    EXPECT_THAT(say(arguments).out, AllOf(HasSubstr("99 % interval"), Not(HasSubstr("95 %"))));
  }
  EXPECT_THAT(say({"compare", "--reproduce", usual, strict}).out,
              AllOf(HasSubstr("A 95 % interval"), HasSubstr("B 99 % interval")));
  EXPECT_THAT(say({"compare", "--reproduce", usual, strict, "--columns", "verdict"}).out,
              ::testing::ContainsRegex("\nchange +verdict\n"));
}

// Values that one of the files lacks are omitted.
TEST_F(Readers, ComparingPrintsNoNumberThatIsNone) {
  std::vector<store::Result> lacking(6, test::samples::everything());
  for (store::ResultBlock& block : lacking[0].blocks) block.status = store::BlockStatus::pending;
  for (store::ResultBlock& block : lacking[1].blocks) {
    if (block.case_index == 0) block.status = store::BlockStatus::failed;
  }
  for (store::ResultCase& row : lacking[2].cases) row.status = store::CaseStatus::impossible;
  for (store::ResultCase& row : lacking[3].cases) row.peak_flops_per_rank = row.tokens_per_step = 0;
  for (store::ResultCase& row : lacking[4].cases) row.model_flop_per_step = 0;
  for (std::vector<float>& steps : lacking[5].step_seconds) steps[3] = std::numeric_limits<float>::quiet_NaN();
  const auto whole = write("whole.h5", test::samples::everything());
  for (std::size_t i = 0; i < lacking.size(); ++i) {
    const auto file = write(fmt::format("lacking{}.h5", i), lacking[i]);
    for (const auto& arguments : Commands{{"compare", whole, file, "--anyway"},
                                          {"compare", file, whole, "--anyway"},
                                          {"compare", whole, file, "--anyway", "--format", "md"},
                                          {"compare", "--reproduce", file, whole},
                                          {"compare", "--history", whole, file, "--anyway"},
                                          {"show", file, "--cost", "1", "--run-tokens", "1e9"}}) {
      const Said said = say(arguments);
      EXPECT_THAT(said.out + said.err, Not(::testing::ContainsRegex("[^a-z](nan|inf)[^a-z]")))
          << fmt::format("{}", fmt::join(arguments, " "));
    }
  }
}

TEST_F(Readers, HistoryNamesWhereACaseChanged) {
  std::vector<std::string> files;
  for (int night = 1; night <= 10; ++night) {
    store::Result result = test::samples::nothing_moved();
    result.created = fmt::format("2026-01-{:02}T03:00:00Z", night);
    result.identity = {{"driver", night < 7 ? "570" : "580"}, {"night", fmt::format("{}", night / 3)}};
    files.push_back(write(fmt::format("n{}.h5", night), result, (night < 7 ? 1 : 1.1) + 0.001 * (night % 3)));
  }
  std::vector<std::string> arguments{"compare", "--history"};
  arguments.insert(arguments.end(), files.rbegin(), files.rend());
  const Said text = say(arguments);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("Over 10 runs the step time changed: baseline +10.0 % between n6.h5 and n7.h5"));
  // Lists other changes between these two nights, and nothing about the other nights.
  EXPECT_THAT(text.out, HasSubstr("- identity, driver: 570 (n6.h5); 580 (n7.h5)\n"));
  EXPECT_THAT(text.out, Not(HasSubstr("night:")));
  const auto with = [&](const std::vector<std::string>& more) { return say(arguments, more); };
  EXPECT_EQ(with({"--fail-on", "slower"}).code, 2);
  EXPECT_EQ(with({"--fail-on", "slower:15"}).code, 0);
  EXPECT_EQ(with({"--reproduce"}).code, 1);
  const auto json = with({"--format", "json"}).json();
  EXPECT_EQ(json["schema"], "harness-compare");
  EXPECT_EQ(json["history"]["cases"][0]["change"]["first_run_after"], 6);
  EXPECT_EQ(json["history"]["cases"][0]["step_seconds"].size(), 10u);
  // A bad night does not count. Too few runs have no verdict.
  const Said left_out = with({write("moved.h5", test::samples::unreliable())});
  EXPECT_EQ(left_out.code, 0) << left_out.err;
  EXPECT_THAT(left_out.out, HasSubstr("! Left out: moved.h5 is unreliable"));
  EXPECT_THAT(say({"compare", "--history", files[0], files[1]}).out, HasSubstr("too few for a verdict"));
  // A bad night may differ from the others.
  store::Result bad = test::samples::unreliable();
  bad.ranks = 8;
  EXPECT_EQ(with({write("bad.h5", bad)}).code, 0);
  store::Result other = test::samples::nothing_moved();
  other.ranks = 8;
  other.model.layers += 1;
  const Said refused = with({write("other.h5", other)});
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr(" in other.h5; Numbers of ranks differ: "));
}

// As between two sides, the gate's share alone counts, also below the smallest effect.
TEST_F(Readers, TheGateOfAHistoryMayBeBelowTheSmallestEffect) {
  std::vector<std::string> arguments{"compare", "--history"};
  for (int night = 1; night <= 10; ++night) {
    store::Result result = test::samples::nothing_moved();
    result.smallest_effect = 0.2;
    result.created = fmt::format("2026-01-{:02}T03:00:00Z", night);
    arguments.push_back(write(fmt::format("n{}.h5", night), result, (night < 7 ? 1 : 1.1) + 0.001 * (night % 3)));
  }
  for (const auto& [gate, code] : {std::pair{"slower", 0}, std::pair{"slower:5", 2}, std::pair{"slower:15", 0}}) {
    EXPECT_EQ(say(arguments, {"--fail-on", gate}).code, code) << gate;
  }
}

TEST_F(Readers, CompareRefusesWhatIsUnlikeAndDoubtsWhatIsUnreliable) {
  const auto a = write("a.h5", test::samples::nothing_moved());
  store::Result other = test::samples::nothing_moved();
  other.ranks = 8;
  const auto ranks = write("ranks.h5", other);
  const auto moved = write("moved.h5", test::samples::unreliable());
  const auto part = write("part.h5", test::samples::partial());
  const Said refused = say({"compare", a, ranks});
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.out, HasSubstr("Numbers of ranks differ"));
  EXPECT_THAT(refused.out, Not(HasSubstr("B MFU")));
  const Said anyway = say({"compare", a, ranks, "--anyway"});
  EXPECT_EQ(anyway.code, 0);
  EXPECT_THAT(anyway.out, HasSubstr("B MFU"));
  EXPECT_EQ(say({"compare", a, moved}).code, 4);
  EXPECT_EQ(say({"compare", a, part}).code, 4);
  store::Result failed = test::samples::nothing_moved();
  failed.cases[2].status = store::CaseStatus::failed;
  EXPECT_EQ(say({"compare", a, write("failed.h5", failed)}).code, 4);
  EXPECT_EQ(say({"compare", a, write("slower.h5", failed, 1.1), "--fail-on", "slower"}).code, 2);
  // Files with nothing in common give no comparison, which is not "no regression".
  store::Result bf16 = test::samples::nothing_moved();
  for (auto& row : bf16.cases) row.settings[0] = "bf16";
  EXPECT_EQ(say({"compare", a, write("bf16.h5", bf16), "--fail-on", "slower"}).code, 3);
  EXPECT_EQ(say({"compare", a, ranks, "--reproduce"}).code, 0);  // effects, not times
}

TEST_F(Readers, ThreeRunsOfOneConfigurationHaveAVerdictTogether) {
  std::vector<std::string> arguments{"compare"};
  for (const double ratio : {0.90, 0.902, 0.898})
    arguments.push_back(
        write(fmt::format("r{}.h5", ratio), test::samples::sweep({"micro_batch_size=2"}, {1, 1, ratio})));
  const auto with = [&](const std::vector<std::string>& more) { return say(arguments, more); };
  const Said text = say(arguments);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("3 runs of one configuration, which agree. Fastest proven change: "
                                  "micro_batch_size=2, 10.0 % less time ["));
  EXPECT_THAT(text.out, HasSubstr("Runs: 1 is r0.9.h5 (2026-01-02T03:04:05Z, 12 rounds); 2 is r0.902.h5"));
  EXPECT_THAT(with({"--columns", "change,runs,verdict"}).out,
              HasSubstr("case                 change  runs  verdict\n"));
  EXPECT_EQ(with({"--format", "json"}).json()["pool"]["cases"][2]["n"], 3);
  for (const auto& option : Commands{{"--fail-on", "slower"}, {"--reproduce"}, {"--anyway"}}) {
    const Said refused = with(option);
    EXPECT_EQ(refused.code, 1) << option[0];
    EXPECT_THAT(refused.err, HasSubstr("are about two sides, but these 3 files"));
  }
  EXPECT_THAT(say({"show", arguments[1], arguments[2]}).err, HasSubstr("show takes one result file, but 2 were given"));
  // A run that does not match the others, or duplicates one of them, is refused in one line.
  store::Result ranks = test::samples::sweep({"micro_batch_size=2"}, {1, 1, 0.9});
  ranks.ranks = 8;
  const Said unlike = with({write("ranks.h5", ranks)});
  EXPECT_EQ(unlike.code, 3);
  EXPECT_EQ(unlike.out, "");
  EXPECT_EQ(unlike.err,
            "harness: these files are not runs of the same configuration: Numbers of ranks differ: 4 in r0.9.h5, 8 in "
            "ranks.h5. Two sides that differ are compared with --with\n");
  const Said twice = with({arguments[1]});
  EXPECT_EQ(twice.code, 1);
  EXPECT_THAT(twice.err, HasSubstr("hold the same run (r0.9.h5). A run counts once: leave one of them out\n"));
  // The exit code has the same rules as with two sides.
  EXPECT_EQ(with({write("moved.h5", test::samples::sweep({"micro_batch_size=2"}, {1, 1.2, 0.9}))}).code, 4);
  store::Result quiet = test::samples::sweep({"micro_batch_size=2"}, {1, 1, 0.9});
  quiet.state = store::RunState::partial;
  const Said partial = with({write("c.h5", quiet)});
  EXPECT_EQ(partial.code, 4) << partial.err;
  EXPECT_THAT(partial.out, HasSubstr("! c.h5 is partial"));
}

TEST_F(Readers, CompareTakesRunsOfTwoSides) {
  std::vector<std::string> arguments{"compare"};
  for (const double factor : {1.0, 1.01, 0.99})
    arguments.push_back(write(fmt::format("a{}.h5", factor), test::samples::nothing_moved(), factor));
  arguments.emplace_back("--with");
  for (const double factor : {1.2, 1.21, 1.19})
    arguments.push_back(write(fmt::format("b{}.h5", factor), test::samples::nothing_moved(), factor));
  const Said text = say(arguments);
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, HasSubstr("The interval is between runs"));
  const Said slower = say(arguments, {"--format", "json", "--fail-on", "slower:10"});
  EXPECT_EQ(slower.code, 2);
  const auto comparison = slower.json()["comparison"];
  EXPECT_TRUE(comparison["between_runs"]);
  EXPECT_EQ(comparison["cases"][0]["a"]["runs"], 3);
}

}  // namespace
}  // namespace harness::cli
