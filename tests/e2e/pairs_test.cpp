// Two of everything that touches a result, by the built program, at random moments, with kills and pauses: whatever
// happens, no block is lost and no sweep's numbers stand in another's file. tests/store/pairs_test.cpp has many more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "command.h"
#include "store/result_file.h"
#include "support/paths.h"
#include "support/soak.h"

namespace harness {
namespace {

namespace fs = std::filesystem;
using test::Command;
using test::harness_job;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int rounds = 2;
using Done = std::set<std::pair<int, std::string>>;  // round from 0, case

struct Actor {
  std::string name, command;
  int seed = 0;  // 0: that of the file it finds
};

// `file`: any name of the result.
Actor actor(int kind, int seed, const std::string& config, const std::string& file) {
  const std::string sweep = "sweep -v " + config + " -o " + file + " --seed " + std::to_string(seed);
  if (kind == 0) return {"sweep", harness_job(1, sweep), seed};
  if (kind == 1) return {"resume", harness_job(1, "sweep -v --resume " + file)};
  if (kind == 2) return {"force", harness_job(1, sweep + " --force"), seed};
  if (kind == 3) return {"follow", test::program_path() + " show --follow " + file};
  return {"report", test::program_path() + " report --force " + file};
}

// The blocks whose end a sweep has reported: "[4/6] round 2/2 baseline: 3.1 ms per step  (…".
Done reported(const std::string& err) {
  Done done;
  std::istringstream lines(err);
  for (std::string line; std::getline(lines, line);) {
    const auto round = line.find("] round "), slash = line.find('/', round), end = line.find(": ", slash);
    if (round == std::string::npos || line.find(" per step  (") == std::string::npos) continue;
    const auto name = line.find(' ', slash) + 1;
    done.emplace(std::stoi(line.substr(round + 8)) - 1, line.substr(name, end - name));
  }
  return done;
}
Done finished(const store::Result& result) {
  Done done;
  for (const store::ResultBlock& block : result.blocks) {
    if (block.status == store::BlockStatus::ok) done.emplace(block.round, result.at(block).name);
  }
  return done;
}
class Pairs : public ::testing::Test {
 protected:
  // The loss of the first step of a model with this seed: the seed can be told from any block's data.
  static void SetUpTestSuite() {
    for (const int seed : {11, 22}) {
      const TemporaryFolder folder;
      const std::string config = test::write_small_config(folder, 1, "  micro_batch_size: [2]\n");
      const std::string file = folder / "small.h5";
      test::run(harness_job(1, "sweep " + config + " --only baseline --seed " + std::to_string(seed)));
      losses_[seed] = store::read_result(file).losses.at(0).at(0);
    }
  }
  static void expect_pure(const std::string& path) {
    const store::Result result = store::read_result(path);
    const auto expected = losses_.find(static_cast<int>(result.seed));
    ASSERT_NE(expected, losses_.end()) << path;
    for (std::size_t i = 0; i < result.blocks.size(); ++i) {
      if (result.blocks[i].status != store::BlockStatus::ok) continue;
      EXPECT_NEAR(result.losses[i][0] / expected->second, 1, 1e-6) << path << ", block " << i;
    }
  }
  static inline std::map<int, double> losses_;
};

void pause(std::mt19937& random, int most_ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution<>(0, most_ms)(random)));
}

void check_ending(const Actor& actor, const test::Outcome& o) {
  if (o.exit_code != 1 || actor.name == "follow" || actor.name == "report") return;
  EXPECT_THAT(o.err, AnyOf(HasSubstr("is in use by "), HasSubstr(" exists"), HasSubstr("does not exist"),
                           HasSubstr("is complete")));
  const auto at = o.err.find("is in use by ");
  if (at != std::string::npos) {
    EXPECT_THAT(o.err.substr(at), AllOf(HasSubstr("(process "), HasSubstr("`rm "), HasSubstr("frees the file")));
  }
}

TEST_F(Pairs, AtRandomMomentsLoseNoBlockAndMixNothing) {
  ASSERT_NE(losses_[11], losses_[22]);
  const int pairs = test::times(8, 3, 200);
  for (int seed = 1; seed <= pairs; ++seed) {
    SCOPED_TRACE("pair " + std::to_string(seed));
    std::mt19937 random(static_cast<unsigned>(seed));
    const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    const TemporaryFolder folder;
    const std::string config = test::write_small_config(folder, rounds, "  micro_batch_size: [2]\n");
    const std::string file = folder / "small.h5";
    fs::create_symlink("small.h5", folder / "link.h5");
    const std::string names[] = {file, folder / "link.h5", fs::relative(file, test::source_dir())};
    // Who begins makes a file; the other may be anybody.
    const Actor actors[] = {actor(pick(2) * 2, 11, config, names[pick(3)]), actor(pick(5), 22, config, names[pick(3)])};
    std::vector<std::unique_ptr<Command>> commands;
    const int fate = pick(4);  // of the first: to be left alone, killed, stopped for a while, or interrupted
    const auto start = [&](int which) { commands.push_back(std::make_unique<Command>(actors[which].command)); };
    SCOPED_TRACE(actors[0].name + ", " + actors[1].name + ", fate " + std::to_string(fate));
    start(0);
    pause(random, 4000);
    if (fate == 1 && pick(2) == 1) commands[0]->kill_all(SIGKILL);
    if (fate == 2) commands[0]->kill_all(SIGSTOP);
    start(1);
    pause(random, 2500);
    if (fate == 1) commands[0]->kill_all(SIGKILL);
    if (fate == 2) commands[0]->kill_all(SIGCONT);
    if (fate == 3) {
      for (const pid_t pid : commands[0]->tagged("sweep")) ::kill(pid, SIGINT);
    }
    std::vector<std::pair<Actor, Done>> all_reported;
    const auto finish = [&](std::size_t which, const Actor& who) {
      const auto o = commands[which]->wait(100);
      check_ending(who, o);
      all_reported.emplace_back(who, reported(o.err));
    };
    finish(0, actors[0]);
    if (actors[1].name == "follow") {
      commands[1]->kill_all(SIGKILL);  // of a killed sweep it has no end
    }
    finish(1, actors[1]);

    if (fs::exists(file)) {
      expect_pure(file);
      const auto last = test::run(harness_job(1, "sweep -v --resume " + file));
      check_ending({"resume", ""}, last);
      all_reported.push_back({{"resume", ""}, reported(last.err)});
      const store::Result result = store::read_result(file);
      EXPECT_EQ(result.state, store::RunState::complete) << last.err;
      expect_pure(file);
      EXPECT_FALSE(fs::exists(file + ".lock"));
      // A file that --force has replaced is gone, as it was meant to be.
      const auto made_it = [&](const Actor& who) { return static_cast<std::uint64_t>(who.seed) == result.seed; };
      const bool replaced =
          std::ranges::any_of(actors, [&](const Actor& who) { return who.name == "force" && made_it(who); });
      for (const auto& [who, done] : all_reported) {
        if (replaced && !made_it(who)) continue;
        EXPECT_TRUE(std::ranges::includes(finished(result), done)) << "blocks that a sweep reported are lost";
      }
    }
  }
}

}  // namespace
}  // namespace harness
