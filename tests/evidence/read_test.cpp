#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "base/text.h"
#include "evidence/answer.h"
#include "evidence/expectations.h"
#include "evidence/input.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/soak.h"

namespace harness::test {
namespace {

using evidence::Answer;
using testing::HasSubstr;
namespace fs = std::filesystem;

std::vector<Answer> read(const std::vector<std::string>& paths, const evidence::Gaps& gaps = {}) {
  return evidence::read_files(paths, gaps);
}

// A sourced file may have any name, lack recognisable content, and look like a configuration.
TEST(Read, FollowsSourcedFilesInAnyOrder) {
  const TemporaryFolder scratch;
  std::vector<std::string> files{scratch.write("train.sh",
                                               "source $(dirname $0)/env.sh\n. ./sizes\nsource ./args.txt\n"
                                               "torchrun --nproc-per-node $GPUS pretrain_gpt.py \"${ARGS[@]}\"\n"),
                                 scratch.write("env.sh", "#!/bin/bash\nexport NCCL_DEBUG=INFO\nGPUS=8\n"),
                                 scratch.write("sizes", "TP=2\nn_layer=12\n"),
                                 scratch.write("args.txt",
                                               "# Sizes.\nARGS=(\n  --hidden-size 4096\n  --num-attention-heads 32\n"
                                               "  --tensor-model-parallel-size $TP\n)\n")};
  std::ranges::sort(files);
  do {
    const Answer answer = read(files).front();
    EXPECT_THAT(answer.headline, HasSubstr("8 ranks: TP 2 PP 1 x DP 4")) << join(files, " ");
    EXPECT_EQ(fact(answer, "layers"), "unknown") << join(files, " ");
    EXPECT_EQ(fact(answer, "env"), "NCCL_DEBUG=INFO");
    EXPECT_THAT(answer.refused, testing::IsEmpty()) << join(files, " ");
    EXPECT_THAT(answer.files, testing::UnorderedElementsAreArray(files));
  } while (std::ranges::next_permutation(files).found);
  files.push_back(scratch.write("other", "TP=4\n"));
  EXPECT_THAT(read(files).front().refused, testing::ElementsAre(HasSubstr("other': not recognised")));
  EXPECT_THAT(error_of([&] { read({files.back()}); }), HasSubstr("other': not recognised"));
  const std::string to_b = scratch.write("a.sh", "source b.sh\ntorchrun --nproc-per-node 8 pretrain_gpt.py\n"),
                    to_a = scratch.write("b.sh", "#!/bin/bash\nsource a.sh\n");
  EXPECT_THAT(read({to_a, to_b}).front().headline, HasSubstr("8 ranks"));
}

TEST(Recognition, IgnoresTheName) {
  const TemporaryFolder scratch;
  for (const auto& entry : fs::directory_iterator(sample_file(""))) {
    if (!fs::exists(entry.path().string() + ".expect")) continue;
    const std::string other = scratch.write("x.dat", text_of(entry.path()));
    EXPECT_EQ(read({other}).front().kind, read({entry.path().string()}).front().kind) << entry.path();
  }
}

TEST(Recognition, NamesWhatIsReadForAnyOtherFile) {
  const TemporaryFolder scratch;
  std::mt19937_64 random(5);
  std::vector<std::string> texts = {"#include <vector>\nint main() { return 0; }\n",
                                    "# Title\n\nSome words about step: and loss: and a [table].\n",
                                    "# Notes\n\nWe measure it so:\n\nbackend: cpu\nbaseline: {}\n",
                                    "a,b,c\n1,2,3\n4,5,6\n",
                                    "{\"name\": \"x\", \"version\": 3}",
                                    "[1, 2, 3]",
                                    "<html><body>graphs and system</body></html>",
                                    "key: value\nlist:\n  - 1\n",
                                    "def main():\n    print('loss')\n",
                                    "\n\n\n",
                                    "12:30\n12:45\n",
                                    "localhost:8080\n",
                                    "1.2.3\n1.2.4\n",
                                    "Mon Jan  5 03:04:05 2026 kernel: eth0 link up\n"};
  while (texts.size() < 200) {
    std::string bytes(random() % 3000 + 20, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % (texts.size() % 2 == 0 ? 256 : 64) + 32);
    texts.push_back("~" + bytes);
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string path = scratch.write("none", texts[i]);
    EXPECT_THAT(error_of([&] { read({path}); }), HasSubstr("not recognised: `read` takes")) << i;
  }
}

TEST(Recognition, SaysWhatToDoWithWhatItRefuses) {
  const TemporaryFolder scratch;
  const auto said = [&](const std::string& text) {
    const std::string path = scratch.write("f", text);
    return error_of([&] { read({path}); });
  };
  EXPECT_THAT(said("\x89HDF\r\n\x1a\n..."), HasSubstr("harness show"));
  EXPECT_THAT(said("\x28\xb5\x2f\xfd...."), HasSubstr("zstdcat"));
  EXPECT_THAT(said("\x80\x02}q\x01"), HasSubstr("a Python pickle, which is a program"));
  EXPECT_THAT(said(""), HasSubstr("it is empty"));
  EXPECT_THAT(error_of([&] { read({scratch.path()}); }), HasSubstr("it is a directory"));
  EXPECT_THAT(error_of([&] { read({"/nowhere/at all"}); }), HasSubstr("No such file"));
}

TEST(Read, TakesSeveralFilesAsOneJob) {
  const auto both = read({sample_file("flight-recorder-0.json"), sample_file("flight-recorder-1.json")});
  ASSERT_EQ(both.size(), 1u);
  EXPECT_EQ(both.front().headline, "rank 1 never came to all_gather 49");
  EXPECT_EQ(both.front().files.size(), 2u);

  const auto answers =
      read({sample_file("hostfile"), sample_file("nccl-sockets.log"), sample_file("megatron-jump.log")});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].kind, "training log");
  EXPECT_EQ(answers[1].kind, "nccl log");
  EXPECT_EQ(answers[2].kind, "hostfile");
}

TEST(Read, FindsTheTopologyAndALogOfNcclAndATestAndStepsInOneText) {
  const TemporaryFolder scratch;
  const std::string path = scratch.write(
      "job.out", text_of(sample_file("topology-pcie.txt")) + text_of(sample_file("nccl-without-direct.log")) +
                     text_of(sample_file("nccl-tests-hole.txt")) + text_of(sample_file("megatron-drift.log")));
  const auto answers = read({path});
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_EQ(answers[0].object, "log");
  EXPECT_EQ(answers[1].object, "bandwidths");
  EXPECT_EQ(answers[2].object, "nccl");
  EXPECT_EQ(answers[3].object, "topology");
}

// `nvidia-smi topo -mp` shows the paths over PCIe alone, in the same matrix.
TEST(Read, ATopologyWithoutNvlinksMayBeOneThatLeavesThemOut) {
  const auto pairs = [](const std::string& kind) {
    const std::string text = fmt::format("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \t{0}\t0\nGPU1\t{0}\t X \t0\n", kind);
    return answer_to(text).evidence.front().second;
  };
  EXPECT_EQ(pairs("NODE"), "no NVLink but NODE in 1 pair (`topo -mp` leaves NVLinks out)");
  EXPECT_EQ(pairs("NV18"), "18 NVLinks in 1 pair");
}

TEST(Read, ComparesTwoTestsSizeBySize) {
  const TemporaryFolder scratch;
  std::string better = text_of(sample_file("nccl-tests-hole.txt"));
  const auto answers = read({sample_file("nccl-tests-hole.txt"), scratch.write("after", better)});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_THAT(answers[1].evidence.back().first, HasSubstr("before, 128 MiB"));
  EXPECT_THAT(answers[1].evidence.back().second, HasSubstr("0.0 %"));
}

TEST(Read, TakesWhatTheFilesDoNotSay) {
  const auto osu = read({sample_file("osu-allgather.txt")}, {.ranks = 4});
  EXPECT_THAT(osu.front().headline, HasSubstr("busbw"));
  const auto deepspeed = read({sample_file("deepspeed.log")}, {.global_batch_size = 128});
  EXPECT_THAT(deepspeed.front().headline, HasSubstr("2.00 s per step"));
}

TEST(Read, ShowsNoSecretOfTheEnvironment) {
  for (const Answer& answer : read({sample_file("nccl-tests.json")})) {
    for (const auto& [key, value] : answer.facts) {
      EXPECT_THAT(value.dump(), testing::Not(HasSubstr("SECRET"))) << key;
    }
  }
}

TEST(Lines, LosePrefixesOfLaunchersAndCollectors) {
  const auto bare = [](const char* text) { return std::string(evidence::without_prefixes(text, 1).text); };
  EXPECT_EQ(bare("[rank0]:[default7]:x"), "x");
  EXPECT_EQ(bare("  7: x"), "x");
  EXPECT_EQ(bare("[1,7]<stdout>:x"), "x");
  EXPECT_EQ(bare("(Worker pid=1, ip=10.0.0.1) x"), "x");
  EXPECT_EQ(bare("| 2024-12-04T05:27:39.074Z | 3: x"), "x");
  EXPECT_EQ(bare("2024-12-04 05:27:39,074 x"), "x");
  EXPECT_EQ(bare("2024-12-04 05:27:39 3: x"), "x");
  EXPECT_EQ(bare("node-3: # nThread 1"), "# nThread 1");
  EXPECT_EQ(bare("step: 10 loss: 3"), "step: 10 loss: 3");
  EXPECT_EQ(bare("[1,7]<stderr>:x"), "x");
  EXPECT_EQ(bare("[7] x"), "x");
  EXPECT_EQ(bare("[pod/launcher-0/mpi] 2024-12-04T05:27:39.074Z # nThread 1"), "# nThread 1");
  EXPECT_EQ(bare("(Worker pid=1) x [repeated 15x across cluster] (Ray deduplicates logs by default.)"), "x");
  EXPECT_EQ(bare("(Worker pid=1) x [repeated later]"), "x [repeated later]");
}

TEST(Input, OfTheStandardInputGoesOnAfterALook) {
  const TemporaryFolder scratch;
  const std::string text = text_of(sample_file("megatron-jump.log"));
  const int saved = ::dup(STDIN_FILENO), file = ::open(scratch.write("in", text).c_str(), O_RDONLY | O_CLOEXEC);
  ::dup2(file, STDIN_FILENO);
  const std::string looked = std::string(evidence::Input("-").head().substr(0, 10));
  evidence::Input again("-");
  const std::string all = evidence::whole_text(again, 1u << 20);
  ::dup2(saved, STDIN_FILENO);
  ::close(saved);
  ::close(file);
  EXPECT_EQ(looked, text.substr(0, 10));
  EXPECT_EQ(all, text);
}

// ---- hostile input

std::string mutated(std::string text, std::mt19937_64& random) {
  const auto place = [&] { return text.empty() ? 0 : random() % text.size(); };
  for (int changes = 1 + static_cast<int>(random() % 4); changes > 0; --changes) {
    switch (random() % 7) {
      case 0:
        text.erase(place(), random() % 50);
        break;
      case 1:
        text.insert(place(), std::string(random() % 300, static_cast<char>(random() % 256)));
        break;
      case 2:
        text.resize(place());
        break;
      case 3:
        text.insert(place(), "99999999999999999999999999");
        break;
      case 4:
        text.insert(place(), "-1e308");
        break;
      case 5:
        text.insert(place(), text.substr(place(), 400));
        break;
      default:
        if (!text.empty()) text[place()] = static_cast<char>(random() % 256);
    }
  }
  return text;
}

TEST(Hostile, MutationsOfEveryKindAreReadOrRefused) {
  const TemporaryFolder scratch(fs::exists("/dev/shm") ? "/dev/shm" : "");  // 8,000 files, in memory
  std::mt19937_64 random(11);
  const int mutations = sanitized ? 30 : 300;
  for (const auto& entry : fs::directory_iterator(sample_file(""))) {
    if (!fs::exists(entry.path().string() + ".expect")) continue;
    const std::string text = text_of(entry.path());
    for (int i = 0; i < mutations; ++i) {
      const std::string path = scratch.write("m", mutated(text, random));
      // An Error is an answer; other exceptions fail the test. The given GPU saves a search of all hardware files.
      error_of([&] { read({path}, {.hardware = "h100-sxm"}); });
    }
  }
}

TEST(Hostile, LongLinesAndDeepNestingCostLittle) {
  const TemporaryFolder scratch;
  struct rusage before {};
  getrusage(RUSAGE_SELF, &before);
  constexpr std::size_t size = 48u << 20;
  EXPECT_THAT(error_of([&] { read({scratch.write("line", std::string(size, 'a'))}); }), HasSubstr("not recognised"));
  EXPECT_THAT(error_of([&] { read({scratch.write("nul", std::string(size, '\0'))}); }), HasSubstr("not recognised"));
  std::string deep = R"({"pg_config": {}, "entries": )" + std::string(1u << 20, '[');
  EXPECT_THAT(error_of([&] { read({scratch.write("deep", deep)}); }), HasSubstr("nested more than 64"));
  std::string wide = R"({"pg_config": {}, "entries": [)";
  while (wide.size() < (4u << 20)) wide += "[],";
  EXPECT_THAT(error_of([&] { read({scratch.write("wide", wide + "0]}")}); }), HasSubstr("more than a million values"));
  struct rusage after {};
  getrusage(RUSAGE_SELF, &after);
  constexpr long most_kib = 300 * 1024;
  EXPECT_TRUE(sanitized || after.ru_maxrss - before.ru_maxrss < most_kib) << after.ru_maxrss;
}

TEST(Hostile, MemoryDoesNotGrowWithTheLog) {
  const TemporaryFolder scratch;
  std::string text = text_of(sample_file("nccl-without-direct.log"));
  for (int i = 0; i < 60'000; ++i)
    text += fmt::format("h{}:{}:{} [0] NCCL INFO NCCL_X{} set by environment to {}\n", i % 9000, i, i, i, i * 7);
  const auto answers = read({scratch.write("many", text)});
  EXPECT_THAT(answers.front().notes, testing::Contains(HasSubstr("more hosts or connections than are kept")));
}

}  // namespace
}  // namespace harness::test
