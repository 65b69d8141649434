#include <csignal>

#include <cmath>
#include <fstream>
#include <set>

#include "user.h"

namespace harness {
namespace {

using ::testing::Pair;

TEST(Sweep, StoppedEarlyItSaysSoAndGoesOnFromItsFileAlone) {
  const TemporaryFolder folder;
  const auto config = write_small_config(folder, 12);
  Command command(harness_job(2, "sweep -v " + config + " --only micro_batch_size --rounds 6"));
  ASSERT_TRUE(command.wait_for("round 1/6")) << command.err_so_far();
  ASSERT_FALSE(command.tagged("sweep").empty());
  kill(command.tagged("sweep").front(), SIGUSR1);
  const auto o = command.wait();
  EXPECT_EQ(o.exit_code, 5) << o.err;
  EXPECT_THAT(o.err, HasSubstr("--resume " + (folder / "small.h5")));
  EXPECT_EQ(store::read_result(folder / "small.h5").state, store::RunState::partial);
  std::filesystem::remove(config);

  const auto resumed = run_job(2, "sweep --resume " + (folder / "small.h5"));
  EXPECT_TRUE(is_measured(resumed)) << resumed.err;
  const store::Result r = store::read_result(folder / "small.h5");
  EXPECT_EQ(r.state, store::RunState::complete);
  EXPECT_EQ(r.cases.size(), 3u);
  EXPECT_EQ(r.rounds, 6);
  const auto changed = run_job(2, "sweep --seed 9 --resume " + (folder / "small.h5"));
  EXPECT_EQ(changed.exit_code, 1);
  EXPECT_THAT(changed.err, HasSubstr("takes the configuration from the file"));
}

TEST(Sweep, ACompleteFileTakesMoreRoundsForWhatIsUnresolved) {
  const TemporaryFolder folder;
  const std::string file = folder / "small.h5";
  // One case is far slower and settled after five rounds. The other is slower in every second block, so that no number
  // of rounds settles it. The pretended times are far above those of any machine, so that noise has no influence.
  const auto config = write_small_config(folder, 5, "  env: [{SLOW: 1}, {TORN: 1}]\n");
  const std::string faults = planted(
      "step=every,kind=pretend,seconds=20;case=env={SLOW: 1},step=every,kind=pretend,seconds=20;"
      "case=env={TORN: 1},blocks=even,step=every,kind=pretend,seconds=20");
  const auto first = run_job(2, "sweep " + config + " --set measure.smallest_effect=5%", faults);
  ASSERT_EQ(first.exit_code, 0) << first.out << first.err;
  const std::string shown = run_alone("show " + file).out;
  ASSERT_THAT(shown, HasSubstr("unresolved")) << first.err;
  const store::Result before = store::read_result(file);
  EXPECT_THAT(before.warnings, Contains(HasSubstr("a fault was planted")));
  std::filesystem::remove(config);

  const auto fewer = run_job(2, "sweep --rounds 5 --resume " + file);
  EXPECT_EQ(fewer.exit_code, 1);
  EXPECT_THAT(fewer.err, HasSubstr("--rounds names the new total, 6 or more"));
  EXPECT_THAT(run_job(2, "sweep --rounds abc --resume " + file).err,
              HasSubstr("--rounds: found 'abc'; expected a whole number"));

  const auto broken = run_job(2, "sweep --rounds 8 --resume " + file, planted("step=-1,kind=exit"));
  EXPECT_EQ(broken.exit_code, 1) << broken.err;
  EXPECT_EQ(store::read_result(file).state, store::RunState::complete);

  const auto more = run_job(2, "sweep --rounds 8 --resume " + file, faults);
  ASSERT_EQ(more.exit_code, 0) << more.err << shown;
  EXPECT_THAT(more.out, HasSubstr("rounds were added after the results of round 5 had been seen"));
  const store::Result after = store::read_result(file);
  EXPECT_EQ(after.state, store::RunState::complete);
  EXPECT_EQ(after.rounds, 8);
  EXPECT_EQ(after.extended, "5");
  EXPECT_EQ(after.looks, "5,8");
  EXPECT_EQ(after.run_uuid, before.run_uuid);
  EXPECT_EQ(after.sessions, 2);
  ASSERT_EQ(after.blocks.size(), 8u * 4);
  for (std::size_t i = 0; i < before.blocks.size(); ++i) {
    EXPECT_EQ(after.blocks[i].start_unix_s, before.blocks[i].start_unix_s);
    EXPECT_EQ(after.step_seconds[i], before.step_seconds[i]);
    EXPECT_EQ(after.rank_seconds[i], before.rank_seconds[i]);
  }
  EXPECT_EQ(after.timeline.size(), before.timeline.size());
  const auto of = [&](const char* name, store::BlockStatus status) {
    return std::ranges::count_if(after.blocks, [&](const store::ResultBlock& block) {
      return after.at(block).name == name && block.status == status;
    });
  };
  EXPECT_EQ(of("env={SLOW: 1}", store::BlockStatus::ok), 5);  // settled by the look after round 5
  EXPECT_EQ(of("env={SLOW: 1}", store::BlockStatus::left_out), 3);
  EXPECT_EQ(of("baseline", store::BlockStatus::ok), 8);

  store::Result killed = after;  // after its last block
  killed.state = store::RunState::partial;
  store::write_result(file, killed);
  const auto ended = run_job(2, "sweep --resume " + file, planted("case=of no sweep,kind=exit"));
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(store::read_result(file).warnings, Contains(HasSubstr("case=of no sweep")));
  EXPECT_THAT(ended.err, HasSubstr("4 cases, 8 rounds"));
}

TEST(Sweep, MeasuresWritesAndShows) {
  const TemporaryFolder folder;
  const auto config = write_small_config(folder);
  const auto o = run_job(2, "sweep " + config + " --set measure.timeline=all");
  // The A/A control may fail by chance; everything else must be right.
  ASSERT_TRUE(is_measured(o)) << o.exit_code << o.out << o.err;
  if (o.exit_code == 4) {
    ASSERT_THAT(o.out, HasSubstr("unreliable"));
  }
  EXPECT_THAT(o.out, HasSubstr("micro_batch_size=2"));

  const store::Result r = store::read_result(folder / "small.h5");
  EXPECT_EQ(r.state, store::RunState::complete);
  ASSERT_EQ(r.cases.size(), 4u);
  ASSERT_EQ(r.blocks.size(), 8u);
  for (std::size_t i = 0; i < r.blocks.size(); ++i) {
    EXPECT_EQ(r.blocks[i].status, store::BlockStatus::ok) << r.blocks[i].reason;
    double sum = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      EXPECT_GT(r.step_seconds[i][k], 0);
      if (k >= 1) sum += r.step_seconds[i][k];
      // Every case trains the same model on the same tokens, so losses must agree.
      EXPECT_NEAR(r.losses[i][k] / r.losses[0][k], 1, 1e-5);
      EXPECT_FLOAT_EQ(r.step_seconds[i][k], std::max(r.rank_seconds[i][k * 2], r.rank_seconds[i][k * 2 + 1]));
    }
    EXPECT_GT(r.blocks[i].timed_total_s, 0);
    EXPECT_LE(r.blocks[i].timed_total_s, sum + 0.5);  // a loaded machine may delay a worker between steps
    EXPECT_GT(r.blocks[i].peak_memory_bytes, 1e6);
  }
  EXPECT_NEAR(r.losses[0][0], std::log(64.0), 0.2);
  // The result names the program that measured it, with its commit.
  const std::string version = run_alone("--version").out;
  EXPECT_THAT(version, HasSubstr("(git "));
  EXPECT_THAT(r.identity, Contains(Pair("harness", version.substr(0, version.find('\n')))));
  EXPECT_EQ(r.conditions.size(), r.blocks.size());
  EXPECT_FALSE(r.timeline.empty());
  EXPECT_FALSE(r.totals.empty());
  for (const auto& x : r.timeline) EXPECT_LE(x.start_s, x.end_s);
  EXPECT_EQ(r.timeline.back().kind, "record");
  std::set<std::int32_t> ranks;
  for (const auto& x : r.timeline) ranks.insert(x.rank);
  EXPECT_EQ(ranks.size(), 2u);
  EXPECT_EQ(run_alone("show " + (folder / "small.h5")).exit_code, o.exit_code);
}

TEST(Sweep, WrapStartsTheTimedWorkersUnderAnotherProgram) {
  const TemporaryFolder folder;
  const auto config = write_small_config(folder);
  const std::string script = folder / "wrap me";  // a name that a shell would split
  std::ofstream(script) << "#!/bin/sh\necho \"$HARNESS_RANK $1 $HARNESS_CASE_SLUG b$HARNESS_BLOCK.\" >> '"
                        << folder / "log"
                        << "'\nshift\nexec \"$@\"\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const auto o =
      run_job(2, "sweep " + config + " --rounds 1 --only micro_batch_size=2 --wrap \"'" + script + "' option\"");
  ASSERT_TRUE(is_measured(o)) << o.err;
  std::ifstream log(folder / "log");
  std::set<std::string> lines;  // must be distinct, so that a profiler's reports do not overwrite each other
  for (std::string line; std::getline(log, line);) {
    EXPECT_THAT(line, HasSubstr(" option "));
    EXPECT_THAT(line, ::testing::AnyOf(HasSubstr(" baseline b"), HasSubstr(" baseline_again b"),
                                       HasSubstr(" micro_batch_size-2 b")));
    EXPECT_TRUE(lines.insert(line).second) << line;
  }
  EXPECT_EQ(lines.size(), 3u * 2);  // three timed blocks on two ranks; nothing else
  EXPECT_THAT(o.out, HasSubstr("times cannot be compared"));
}

// A mistake in a job of several ranks. Without a GPU, nothing starts: with or without the cuda backend in this build,
// and on any machine.
TEST(Sweep, BadInputCostsOneMessageAndWritesNothing) {
  const TemporaryFolder folder;
  const std::string config = write_small_config(folder), file = folder / "out.h5";
  struct Bad {
    std::string environment;
    int ranks;
    std::string arguments, words;
  };
  for (const Bad& bad : std::vector<Bad>{{"", 3, config + " --bogus", ""},
                                         {"", 3, config + " --set layout='{tensor_parallel: 3}'", ""},
                                         {"CUDA_VISIBLE_DEVICES= ", 16, "configs/16node.yaml", "`backend: cpu`"}}) {
    SCOPED_TRACE(bad.arguments);
    const auto o = test::run(bad.environment + harness_job(bad.ranks, "sweep " + bad.arguments + " -o " + file), 60);
    EXPECT_EQ(o.exit_code, 1) << o.err;
    EXPECT_TRUE(o.out.empty()) << o.out;
    EXPECT_THAT(o.err, HasSubstr(bad.words));
    // At most one message of the program: mpirun may end it before it speaks, and add its own about the exit code.
    const std::size_t first = o.err.find("harness: ");
    EXPECT_TRUE(first == std::string::npos || o.err.find("harness: ", first + 1) == std::string::npos) << o.err;
    EXPECT_FALSE(std::filesystem::exists(file));
  }
}

}  // namespace
}  // namespace harness
