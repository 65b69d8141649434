// Two processes that use a result at random moments, with kills and pauses, under any name of the file, on one machine,
// on two, and in a requeued Slurm job: no block is ever lost, and two processes never write at the same time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "base/text.h"
#include "other_process.h"
#include "sample.h"
#include "store/lock.h"
#include "support/files.h"
#include "support/soak.h"

namespace harness::store {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// An actor's orders: "KIND SEED BOOT PATH".
struct Part {
  std::string kind, path;
  std::uint64_t seed = 0;
  Owner self = this_process();

  explicit Part(const std::string& text) {
    const auto words = split(text, ' ');
    kind = words.at(0);
    seed = std::stoull(std::string(words.at(1)));
    if (words.at(2) != "here") self.boot = words[2];
    path = words.at(3);
  }
};

std::string mark_of(std::uint64_t seed) {
  return fmt::format("by the run of seed {}", seed);
}

// Records the holder of the lock in a file. Throws Error if it names another living process.
class OnlyWriter {
 public:
  explicit OnlyWriter(const std::string& path) : path_(fs::path(path).parent_path() / "writing") {
    const auto other = parse_owner(test::text_of(path_));
    if (other && process_of(*other) == Process::runs) throw Error("TWO WRITERS: " + describe(*other) + " is one too");
    std::ofstream(path_) << print_owner(this_process());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the preparation
    require();
  }
  ~OnlyWriter() { fs::remove(path_); }
  void require() const {
    const auto found = parse_owner(test::text_of(path_));
    if (!found || found->pid != ::getpid()) throw Error("TWO WRITERS: another has come");
  }

 private:
  std::string path_;
};

void write_blocks(const OtherProcess::Side& side, const Lock& lock, const OnlyWriter& only, ResultFile& file,
                  const Result& result) {
  for (int index = 0; index < static_cast<int>(result.blocks.size()); ++index) {
    if (result.blocks[static_cast<std::size_t>(index)].status == BlockStatus::ok) continue;
    SampleBlock block = sample_block(result, index);
    block.row.reason = mark_of(result.seed);
    lock.require();
    only.require();
    file.write_block(index, block.row, block.steps, block.losses, block.ranks);
    side.say(fmt::format("{} {}", result.seed, index));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  file.finish(RunState::complete);
}

// As `sweep` does, with blocks that take no time.
void sweep(const OtherProcess::Side& side, const Part& part) {
  const auto lock = Lock::take(part.path, part.self);
  const OnlyWriter only(lock->path());
  if (part.kind == "resume") {
    const Result result = read_result(lock->path());
    if (result.state == RunState::complete) fail("{} is complete", part.path);
    lock->require();
    const auto file = std::make_unique<ResultFile>(lock->path());
    file->begin_session(result.sessions + 1);
    return write_blocks(side, *lock, only, *file, result);
  }
  const bool force = part.kind == "force";
  if (!force && fs::exists(lock->path())) fail("{} exists", part.path);
  Result plan = sample_plan();
  plan.seed = part.seed;
  lock->require();
  const auto file = ResultFile::create(lock->path(), plan, force);
  write_blocks(side, *lock, only, *file, plan);
}

// As `show --follow` does.
void follow(const Part& part) {
  for (int looks = 0; looks < 500; ++looks) {
    const Standing standing = standing_of(part.path);
    if (fs::exists(part.path)) {
      const Result result = read_result(part.path);
      for (const ResultBlock& block : result.blocks) {
        if (block.status == BlockStatus::ok && block.reason != mark_of(result.seed)) fail("MIXED: {}", block.reason);
      }
      if (result.state != RunState::running) return;
    }
    if (standing.writer == Process::gone) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

const OtherProcess::Role actor("actor", [](const OtherProcess::Side& side, const std::string& text) {
  side.say("started");
  side.wait();
  const Part part(text);
  if (part.kind == "follow") {
    follow(part);
  } else {
    sweep(side, part);
  }
  side.say("done");
});

using Written = std::set<std::pair<std::uint64_t, int>>;  // seed, block

// Returns the last line of an actor; "" if it was killed.
std::string collect(const OtherProcess& process, Written& written) {
  for (std::string line = process.line();; line = process.line()) {
    if (line.empty() || line == "done" || line.starts_with("error: ")) return line;
    const auto blank = line.find(' ');
    written.emplace(std::stoull(line.substr(0, blank)), std::stoi(line.substr(blank)));
  }
}

void pause(std::mt19937& random, int most_ms) {
  std::this_thread::sleep_for(std::chrono::microseconds(random() % static_cast<unsigned>(1000 * most_ms)));
}

class Pairs : public ::testing::Test {
 protected:
  // Returns all names of one result.
  static std::vector<std::string> names_in(const test::TemporaryFolder& folder) {
    fs::create_directory(folder / "there");
    fs::create_directory_symlink("there", folder / "folder");
    fs::create_symlink("there/r.h5", folder / "link.h5");
    return {folder / "there/r.h5", folder / "folder/r.h5", folder / "link.h5",
            fs::relative(folder / "there/r.h5", fs::current_path())};
  }
  // Checks that a refusal names the owner and the command that frees the file, then runs that command.
  static void obey(const std::string& last) {
    EXPECT_THAT(last, testing::Not(AnyOf(HasSubstr("TWO WRITERS"), HasSubstr("MIXED"))));
    if (!last.starts_with("error: ")) return;
    EXPECT_THAT(last, AnyOf(HasSubstr("is in use by "), HasSubstr(" exists"), HasSubstr("no such file"),
                            HasSubstr("is complete")));
    if (last.find("is in use by ") == std::string::npos) return;
    EXPECT_THAT(last, AnyOf(HasSubstr("(process "), HasSubstr("the lock does not say more")));
    const auto command = last.find("`rm "), end = last.find('`', command + 1);
    ASSERT_NE(end, std::string::npos) << last;
    static_cast<void>(std::system((last.substr(command + 1, end - command - 1) + " 2> /dev/null").c_str()));
  }
  // Returns the last line of an actor that resumes the result.
  static std::string resume(const std::string& path, Written& written) {
    const OtherProcess again({}, actor, "resume 0 here " + path);
    EXPECT_EQ(again.line(), "started");
    again.go();
    return collect(again, written);
  }
  static void expect_whole(const std::string& path, const Written& written) {
    const Result result = read_result(path);
    for (std::size_t i = 0; i < result.blocks.size(); ++i) {
      const bool reported = written.contains({result.seed, static_cast<int>(i)});
      const bool ok = result.blocks[i].status == BlockStatus::ok;
      EXPECT_TRUE(ok || !reported) << "block " << i << " is lost";
      if (!ok) continue;
      EXPECT_EQ(result.blocks[i].reason, mark_of(result.seed));
      EXPECT_EQ(result.step_seconds[i], sample_block(result, static_cast<int>(i)).steps);
    }
  }
};

TEST_F(Pairs, AtRandomMomentsLoseNoBlockAndNeverWriteAtOnce) {
  const int pairs = test::times(24, 6, 200);
  const char* const kinds[] = {"sweep", "force", "resume", "follow"};
  for (int number = 1; number <= pairs; ++number) {
    std::mt19937 random(static_cast<unsigned>(number));
    const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    const test::TemporaryFolder folder;
    const std::vector<std::string> names = names_in(folder);
    const int where = pick(3);  // one machine, two, or a requeued job on two
    const int fate = pick(3);   // for the first: none, killed, or stopped for a while
    std::vector<std::unique_ptr<OtherProcess>> actors;
    for (int which = 0; which < 2; ++which) {
      const std::string kind = which == 0 ? kinds[pick(2)] : kinds[pick(4)];
      const std::string boot = where == 0 ? "here" : "machine" + std::to_string(which);
      const std::string text = fmt::format("{} {} {} {}", kind, 11 + which, boot, names[random() % names.size()]);
      Environment environment;
      if (where == 2) environment = {{"SLURM_JOB_ID", "88"}, {"SLURM_RESTART_COUNT", std::to_string(which)}};
      SCOPED_TRACE(text);
      actors.push_back(std::make_unique<OtherProcess>(environment, actor, text));
      ASSERT_EQ(actors.back()->line(), "started");
    }
    SCOPED_TRACE(fmt::format("pair {}, place {}, fate {}", number, where, fate));
    // Slurm requeues a job once its processes are gone.
    const bool dies_first = where == 2;
    actors[0]->go();
    pause(random, 60);
    if (fate == 1 || dies_first) actors[0]->send(SIGKILL);
    if (fate == 2 && !dies_first) actors[0]->send(SIGSTOP);
    Written written;
    if (dies_first) {
      static_cast<void>(collect(*actors[0], written));
      actors[0]->await_end();
    }
    actors[1]->go();
    pause(random, 60);
    if (fate == 2 && !dies_first) actors[0]->send(SIGCONT);
    const std::string first = dies_first ? "" : collect(*actors[0], written);
    const std::string last = collect(*actors[1], written);
    if (dies_first) {
      EXPECT_THAT(last, testing::Not(HasSubstr("is in use by "))) << "a requeued job needs nobody";
    }
    obey(first);
    obey(last);
    if (HasFailure()) return;

    if (fs::exists(names[0])) {
      expect_whole(names[0], written);
      std::string ended = resume(names[0], written);
      obey(ended);  // to free the lock of the first, which no refusal has named yet
      if (ended.find("is in use by ") != std::string::npos) ended = resume(names[0], written);
      EXPECT_THAT(ended, AnyOf("done", HasSubstr("is complete")));
      expect_whole(names[0], written);
      EXPECT_EQ(read_result(names[0]).state, RunState::complete);
      for (const auto& entry : fs::directory_iterator(folder / "there")) {
        const std::string name = entry.path().filename();
        EXPECT_TRUE(name == "r.h5" || name.ends_with(".tmp") || name == "writing") << name << " is left";
      }
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace harness::store
