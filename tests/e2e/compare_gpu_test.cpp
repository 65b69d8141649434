#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "command.h"
#include "support/files.h"
#include "support/wait.h"

namespace harness {
namespace {

using test::TemporaryFolder;
using test::text_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Json = nlohmann::json;

constexpr double tokens = 16 * 2048;  // of a step

void write_program(const std::string& path, const std::string& body) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
  ::chmod(path.c_str(), 0755);
}

// Programs in the places of harness, of a python with PyTorch and of llm.c. Each notes its start in `order` and takes
// the seconds per step of its `times`: the first run the first, and so on, the last for all that follow. The shell in
// `before` sees the arguments and, as $run, the number of the run, from 1.
class Sides {
 public:
  std::vector<double> harness{0.5}, pytorch{0.6}, llmc{0.8};
  std::string before_harness = ":", before_pytorch = ":", before_llmc = ":", torch = "exit 0";

  test::Outcome compare(const std::string& arguments, double timeout_s = 60) const {
    write();
    return test::run(command(arguments), timeout_s);
  }
  std::string command(const std::string& arguments) const {
    return "env HARNESS=" + folder_ / "harness" + " PYTHON=" + folder_ / "python" +
           " bash bench/compare_gpu.sh --llmc " + folder_ / "llmc" + " --keep " + folder_ / "kept" + " -o " +
           folder_ / "result.json" + " --warmup 1 --steps 3 " + arguments;
  }
  void write() const {
    write_program(folder_ / "harness",
                  "case $1 in --version) echo harness 9.9; exit;; esac\n" + begin("H", harness, before_harness) +
                      "while [ $# -gt 1 ]; do [ $1 != --json ] || json=$2; shift; done\n"
                      "echo harness 9.9; echo cudnn: 9.15.1\n"
                      "cat > $json << END\n{\n \"median_seconds\": $t,\n \"fastest_seconds\": $t,\n"
                      " \"slowest_seconds\": $t,\n \"tokens_per_second\": $(rate $t)\n}\nEND\nexit $status");
    write_program(folder_ / "python",
                  "case \"$*\" in *'import torch'*) " + torch + ";; *pytorch_step*) ;; *) exit 1;; esac\n" +
                      begin("P", pytorch, before_pytorch) +
                      "echo \"{\\\"step_seconds\\\": $t, \\\"tokens_per_second\\\": $(rate $t), "
                      "\\\"fastest_seconds\\\": $t, \\\"slowest_seconds\\\": $t, \\\"torch\\\": \\\"2.99\\\", "
                      "\\\"cuda\\\": \\\"13.9\\\", \\\"cudnn\\\": \\\"9.9.9\\\", \\\"attention\\\": \\\"FLASH\\\"}\"");
    // The first step, as a GPU's first, takes longer.
    write_program(folder_ / "llmc/train_gpt2cu",
                  begin("L", llmc, before_llmc) +
                      "for i in 1 2 3 4; do [ $i != 1 ] || extra=100; ms=$(awk -v t=$t -v e=${extra:-0} 'BEGIN {print "
                      "1000 * t + e}')\necho \"step    $i/4 | loss 10.9 (+nanz)| norm 1.0 (+nanz)| lr 1e-4 | $ms ms | "
                      "-100.0% bf16 MFU | 1 tok/s\"; extra=0; done");
    std::ofstream(folder_ / "llmc/tokens.bin") << "tokens";
    std::ofstream(folder_ / "llmc/about") << "commit 0123456789, CUDA 13.9\n";
  }
  void remove_llmc() { std::filesystem::remove_all(folder_ / "llmc"); }
  std::string order() const { return text_of(folder_ / "order"); }
  Json json() const { return Json::parse(text_of(folder_ / "result.json")); }
  // The row of a side in "results" of the JSON; null: it has none.
  Json result(const std::string& side) const {
    const Json all = json();
    for (const Json& r : all.at("results")) {
      if (r.at("side") == side) return r;
    }
    return {};
  }

 private:
  std::string begin(const std::string& letter, const std::vector<double>& times, const std::string& before) const {
    std::string text = "printf " + letter + " >> " + folder_ / "order" + "\nrun=$(grep -o " + letter + " " +
                       folder_ / "order" +
                       " | wc -l); status=0\nset_time() { shift $((run < $# ? run - 1 : $# - 1)); "
                       "t=$1; }\nset_time";
    for (const double t : times) text += " " + std::to_string(t);
    return text + "\nrate() { awk -v t=$1 'BEGIN {printf \"%.3f\", 16 * 2048 / t}'; }\n" + before + "\n";
  }

  const TemporaryFolder folder_;
};

TEST(CompareGpu, RunsTheSidesInTurnsAndComputesTheRatios) {
  Sides sides;
  sides.harness = {0.5, 0.4, 0.6};
  sides.pytorch = {0.55, 0.48, 0.63};       // 1.10, 1.20 and 1.05 times as long
  sides.llmc = {0.9, 0.7, 0.75, 0.8, 0.9};  // the first two choose between its variants
  const auto o = sides.compare("--rounds 3 --pytorch compile");
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err;
  EXPECT_EQ(sides.order(), "LLHPLHPLHPL");
  const Json h = sides.result("harness"), p = sides.result("pytorch"), l = sides.result("llmc");
  EXPECT_NEAR(h.at("step_seconds").get<double>(), 0.5, 1e-6);
  EXPECT_NEAR(h.at("tokens_per_second").get<double>(), tokens / 0.5, 1);
  EXPECT_NEAR(p.at("harness_over_side").get<double>(), 0.55 / 0.5, 1e-3);
  EXPECT_NEAR(p.at("lowest_ratio").get<double>(), 0.63 / 0.6, 1e-3);
  EXPECT_NEAR(p.at("highest_ratio").get<double>(), 0.48 / 0.4, 1e-3);
  EXPECT_EQ(l.at("variant"), "defaults");  // 0.7 s against 0.9 s
  EXPECT_NEAR(l.at("step_seconds").get<double>(), 0.8, 1e-4);
  EXPECT_NEAR(l.at("harness_over_side").get<double>(), 0.75 / 0.5, 1e-3);  // of 1.5, 2.0 and 1.5
  EXPECT_THAT(o.out, AllOf(HasSubstr("PyTorch  compile                     16    550.0"), HasSubstr(" 1.100 "),
                           HasSubstr("harness / PyTorch, round by round: 1.050 to 1.200")));
  EXPECT_THAT(o.out, AllOf(HasSubstr("harness: harness 9.9, cudnn 9.15.1"),
                           HasSubstr("PyTorch: torch 2.99, CUDA 13.9, cuDNN 9.9.9, attention FLASH"),
                           HasSubstr("llm.c: commit 0123456789, CUDA 13.9")));
  EXPECT_EQ(sides.json().at("runs").size(), 11u);
  EXPECT_THAT(o.err,
              HasSubstr("round 1 of 3: harness fused, tuned, micro-batch 16 …\ncompare: harness: 500.0 ms, 65536 tok"));
}

TEST(CompareGpu, AnAbsentSideIsNamedAndTheOthersRun) {
  Sides sides;
  sides.torch = "exit 1";
  sides.write();
  sides.remove_llmc();
  const auto o = test::run(sides.command("--rounds 2"));
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err;
  EXPECT_EQ(sides.order(), "HH");
  EXPECT_THAT(o.out, AllOf(HasSubstr("PyTorch: absent: "), HasSubstr("has no PyTorch with CUDA"),
                           HasSubstr("llm.c: absent: "), HasSubstr("bench/build_llmc.sh builds them")));
  EXPECT_EQ(sides.json().at("results").size(), 1u);
}

TEST(CompareGpu, WithoutHarnessTheOthersRunAndTheStatusIsOne) {
  Sides sides;
  sides.before_harness = "echo 'no such option' >&2; exit 1";
  const auto o = sides.compare("--rounds 2 --pytorch compile");
  EXPECT_EQ(o.exit_code, 1) << o.out << o.err;
  EXPECT_THAT(o.out, HasSubstr("harness: round 1: failed: exit status 1: no such option"));
  EXPECT_TRUE(sides.result("pytorch").at("harness_over_side").is_null());
}

// Its ratio comes from the rounds that both sides finished.
TEST(CompareGpu, ASideThatFailsInARoundMissesThatRound) {
  Sides sides;
  sides.harness = {0.5, 0.1, 0.5};
  sides.before_pytorch = "[ $run != 2 ] || { echo 'CUDA \"out of memory\"' >&2; exit 1; }";
  const auto o = sides.compare("--rounds 3 --pytorch compile");
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err;
  EXPECT_EQ(sides.result("pytorch").at("runs"), 2);
  EXPECT_NEAR(sides.result("pytorch").at("lowest_ratio").get<double>(), 0.6 / 0.5, 1e-3);
  EXPECT_THAT(o.out, HasSubstr("PyTorch: round 2: failed: exit status 1: CUDA \"out of memory\""));
  EXPECT_EQ(sides.result("llmc").at("runs"), 3);
}

TEST(CompareGpu, ASideThatOverrunsIsEndedAndLeftOut) {
  Sides sides;
  sides.before_llmc = "[ $run -lt 3 ] || exec sleep 600";
  const auto o = sides.compare("--rounds 4 --pytorch compile --limit 1");
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err;
  EXPECT_EQ(sides.order(), "LLHPLHPLHPHP");
  EXPECT_THAT(o.out, AllOf(HasSubstr("llm.c: round 1: failed: not finished within 1 s"),
                           HasSubstr("llm.c: left out after two runs in a row failed")));
  EXPECT_TRUE(sides.result("llmc").is_null());
  EXPECT_EQ(sides.result("pytorch").at("runs"), 4);
}

TEST(CompareGpu, KeepsItsTime) {
  Sides sides;
  sides.before_pytorch = "exec sleep 600";
  const auto o = sides.compare("--rounds 2 --pytorch compile --seconds-in-all 8");
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("PyTorch: round 1: failed: not finished within"),
                           HasSubstr("llm.c: round 1: not run: none of the 8 seconds in all is left")));
  EXPECT_EQ(sides.result("harness").at("runs"), 1);
}

TEST(CompareGpu, EachSideMayHaveItsBestMicroBatch) {
  Sides sides;
  sides.before_harness =
      "case \"$*\" in *'--micro-batch 32'*) echo 'out of memory'; exit 1;; "
      "*'--micro-batch 8'*) t=0.9;; esac";
  sides.before_llmc = "case \"$*\" in *'-b 8 '*) t=0.1;; esac";  // the tokens of half as many sequences in a tenth
  const auto o = sides.compare("--rounds 1 --pytorch compile --micro-batch 8,16,32 --best-of-each");
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err;
  EXPECT_EQ(sides.result("harness").at("micro_batch"), 16);
  EXPECT_EQ(sides.result("llmc").at("micro_batch"), 8);
  EXPECT_NEAR(sides.result("llmc").at("tokens_per_second").get<double>(), tokens / 2 / 0.1, 1);
  EXPECT_THAT(o.out, HasSubstr("harness: fused, tuned, micro-batch 32: failed: exit status 1: out of memory"));
}

TEST(CompareGpu, TimesStandAlthoughTheRunFailedLater) {
  Sides sides;
  sides.before_harness = "status=1";
  const auto o = sides.compare("--rounds 1 --pytorch compile");
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err;
  EXPECT_EQ(sides.result("harness").at("runs"), 1);
  EXPECT_THAT(o.out, HasSubstr("harness: timed, but exit status 1"));
}

TEST(CompareGpu, MissingStepsOfLlmcAreNotATime) {
  Sides sides;
  sides.before_llmc = "echo 'step    1/4 | loss 10.9 | 800 ms | x'; exit 0";
  const auto o = sides.compare("--rounds 1 --pytorch compile");
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err;
  EXPECT_THAT(o.out, HasSubstr("llm.c: not compared: it printed the times of 1 steps; expected 4"));
}

TEST(CompareGpu, InterruptedItLeavesWhatIsDone) {
  Sides sides;
  sides.before_pytorch = "exec sleep 600";
  sides.write();
  test::Command job(sides.command("--rounds 2 --pytorch compile"));
  ASSERT_TRUE(job.wait_for("round 1 of 2: pytorch"));
  ASSERT_TRUE(test::wait_until([&] { return !job.tagged("600").empty(); }));  // the run is under way
  ::kill(job.pid(), SIGTERM);
  const auto o = job.wait();
  EXPECT_EQ(o.exit_code, 143) << o.err;
  EXPECT_EQ(sides.result("harness").at("runs"), 1);
  EXPECT_THAT(o.out, HasSubstr("interrupted"));
  EXPECT_TRUE(job.leaves_no_process());
}

TEST(CompareGpu, WrongArgumentsRunNothing) {
  Sides sides;
  for (const std::string wrong :
       {"--micro-batch 8,16", "--micro-batch big", "--steps -3", "--rounds 0", "--rounds", "--fast"}) {
    const auto o = sides.compare(wrong);
    EXPECT_EQ(o.exit_code, 1) << wrong;
    EXPECT_EQ(o.out, "") << wrong;
    EXPECT_NE(o.err, "") << wrong;
  }
  EXPECT_EQ(sides.order(), "");
}

// A toolkit, a checkout and headers that make nothing real.
TEST(BuildLlmc, BuildsACopyAndWritesTokens) {
  const TemporaryFolder folder;
  write_program(folder / "cuda/bin/nvcc", "echo 'Cuda compilation tools, release 13.9, V13.9.1'");
  std::filesystem::create_directories(folder / "cuda/include");
  std::filesystem::create_directories(folder / "cuda/lib64");
  std::filesystem::create_directories(folder / "frontend/include");
  std::filesystem::create_directories(folder / "llm.c/llmc");
  std::ofstream(folder / "cuda/include/cudnn.h");
  std::ofstream(folder / "cuda/include/cudnn_version.h")
      << "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 15\n#define CUDNN_PATCHLEVEL 1\n";
  for (const std::string library : {"cublas", "cublasLt", "cudnn", "nvrtc"}) {
    std::ofstream(folder / ("cuda/lib64/lib" + library + ".so"));
  }
  std::ofstream(folder / "frontend/include/cudnn_frontend.h");
  std::ofstream(folder / "llm.c/train_gpt2.cu");
  std::ofstream(folder / "llm.c/llmc/cuda_utils.cuh")
      << "check(cudaMallocManaged(out, bytes));\n  check(cudaMemAdvise(*out, bytes, preferred, "
         "cudaCpuDeviceId));\nend\n";
  std::ofstream(folder / "llm.c/Makefile")
      << "train_gpt2cu:\n\ttest -e cudnn-frontend/include/cudnn_frontend.h\n\techo '"
      << "$(USE_CUDNN) "
      << "$(GPU_COMPUTE_CAPABILITY)' > $@\n";
  const std::string build = "env PATH=" + folder / "cuda/bin" + ":$PATH CUDNN_FRONTEND_HOME=" + folder / "frontend" +
                            " bash bench/build_llmc.sh --arch 90 -o " + folder / "out ";
  const auto o = test::run(build + folder / "llm.c");
  ASSERT_EQ(o.exit_code, 0) << o.out << o.err;
  EXPECT_EQ(text_of(folder / "out/train_gpt2cu"), "1 90\n");
  EXPECT_THAT(text_of(folder / "out/about"), HasSubstr("CUDA 13.9, cuDNN 9.15.1, sm_90"));
  EXPECT_FALSE(std::filesystem::exists(folder / "llm.c/train_gpt2cu"));
  EXPECT_EQ(text_of(folder / "out/source/llmc/cuda_utils.cuh"), "check(cudaMalloc(out, bytes));\nend\n");
  EXPECT_THAT(text_of(folder / "llm.c/llmc/cuda_utils.cuh"), HasSubstr("cudaMallocManaged"));

  const std::string file = text_of(folder / "out/tokens.bin");
  std::int32_t header[3] = {};
  std::memcpy(header, file.data(), sizeof header);
  EXPECT_EQ(header[0], 20240520);
  EXPECT_EQ(header[1], 1);
  ASSERT_EQ(file.size(), 1024 + 2 * static_cast<std::size_t>(header[2]));
  int different = 0;
  std::uint16_t largest = 0, last = 0;
  for (std::size_t i = 1024; i < file.size(); i += 2) {
    std::uint16_t token = 0;
    std::memcpy(&token, file.data() + i, 2);
    largest = std::max(largest, token);
    different += token != last ? 1 : 0;
    last = token;
  }
  EXPECT_LT(largest, 50257);
  EXPECT_GT(largest, 40000);
  EXPECT_GT(different, header[2] / 2);

  const auto none = test::run(build + folder / "frontend");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("has no train_gpt2.cu"));
}

}  // namespace
}  // namespace harness
