#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "command.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/wait.h"

namespace harness {
namespace {

using test::run;
using test::TemporaryFolder;
using test::text_of;
using ::testing::HasSubstr;
using ::testing::Not;

std::string script(const std::string& arguments) {
  return "bash scripts/gpu_check.sh " + arguments;
}

// A program in the harness's place: `body` is shell that sees the arguments.
std::string write_program(const TemporaryFolder& folder, const std::string& body) {
  const std::string path = folder / "harness";
  std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
  ::chmod(path.c_str(), 0755);
  return path;
}

TEST(GpuCheck, WithoutAGpuSaysSoInOneLine) {
  const TemporaryFolder folder;
  const auto o = test::run("env CUDA_VISIBLE_DEVICES= HARNESS=" + test::program_path() + " " +
                           script("-o " + folder / "gpu-check.txt"));
  EXPECT_EQ(o.exit_code, 3) << o.out << o.err;
  const std::string all = o.out + o.err;
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 1) << all;
  EXPECT_THAT(all, HasSubstr("no GPU"));
  EXPECT_EQ(test::text_of(folder / "gpu-check.txt"), "");
}

TEST(GpuCheck, GoesOnAfterAFailureAndSaysWhichRowFailed) {
  const TemporaryFolder folder;
  const auto program =
      write_program(folder,
                    "echo 0.1.0\necho 'cpu: a machine'\n"
                    "case \"$*\" in *reference*) echo '3 checks passed, 1 failed, 0 not run'; exit 1;; "
                    "esac\necho '9 checks passed, 0 failed, 0 not run'");
  const auto o = test::run(
      "env BACKEND=cpu HARNESS=" + program + " " +
      script("-o " + folder / "table.txt" + " --status " + folder / "status.md" + " reference operations memcheck"));
  EXPECT_EQ(o.exit_code, 1) << o.out << o.err;
  EXPECT_THAT(o.out, HasSubstr("operations against the cpu backend   passed"));
  EXPECT_THAT(o.out, HasSubstr("reference and equalities             FAILED"));
  EXPECT_THAT(o.out, HasSubstr("exit status 1; 3 checks passed, 1 failed"));
  EXPECT_THAT(o.out, HasSubstr("compute-sanitizer memcheck           not run"));
  EXPECT_EQ(test::text_of(folder / "table.txt").find(o.out), 0);
  EXPECT_THAT(test::text_of(folder / "table.txt"), HasSubstr("---- reference ----\n0.1.0"));
  EXPECT_THAT(test::text_of(folder / "status.md"), HasSubstr("| reference and equalities | FAILED |"));
}

// Where the rows start in the table, in the order of `names`; npos: not there.
std::vector<std::size_t> places(const std::string& table, const std::vector<std::string>& names) {
  std::vector<std::size_t> found;
  for (const std::string& name : names) found.push_back(table.find("\n" + name + "  "));
  return found;
}

TEST(GpuCheck, RunsWhatTellsMostFirst) {
  const TemporaryFolder folder;
  const auto program = write_program(folder, "echo 0.1.0\necho '1 checks passed, 0 failed, 0 not run'");
  const auto o = test::run("env BACKEND=cpu PYTHON=false MPIRUN=/bin/false HARNESS=" + program + " " +
                           script("-o " + folder / "table.txt"));
  const auto found =
      places(o.out, {"clocks, power, versions, libraries", "a step of gpt3-125m, by operation",
                     "tokens/s against PyTorch", "operations against the cpu backend", "reference and equalities",
                     "2 and 4 ranks on one device", "a worker that is killed", "a worker that is frozen",
                     "compute-sanitizer memcheck", "operations at real sizes"});
  EXPECT_TRUE(std::ranges::is_sorted(found)) << o.out << o.err;
  EXPECT_NE(found.back(), std::string::npos) << o.out;
  EXPECT_THAT(o.out, Not(HasSubstr("racecheck")));  // only when named
  EXPECT_EQ(o.exit_code, 1);                        // the sweeps of this program are none
}

TEST(GpuCheck, AnUnknownRowRunsNothing) {
  const auto o = test::run("env BACKEND=cpu HARNESS=" + test::program_path() + " " + script("operation"));
  EXPECT_EQ(o.exit_code, 1);
  EXPECT_THAT(o.err, HasSubstr("unknown row: operation"));
  EXPECT_EQ(o.out, "");
}

// As the loader ends, for a binary whose libraries are elsewhere.
TEST(GpuCheck, AProgramThatDoesNotStartEndsTheCheck) {
  const TemporaryFolder folder;
  const auto program = write_program(folder, "echo 'libmpi.so.40: cannot open shared object file' >&2; exit 127");
  const auto o = test::run("env BACKEND=cpu HARNESS=" + program + " " + script("-o " + folder / "table.txt"));
  EXPECT_EQ(o.exit_code, 1);
  EXPECT_EQ(o.out, "");
  EXPECT_THAT(o.err, HasSubstr("does not run: libmpi.so.40: cannot open"));
  EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
}

TEST(GpuCheck, EndsWhatHangsAndGoesOn) {
  const TemporaryFolder folder;
  const auto program = write_program(
      folder, "case \"$*\" in *fill*|*reference*) echo 0.1.0;; *) echo 'a: passed'; exec sleep 600;; esac");
  const auto o = test::run("env BACKEND=cpu ROW_SECONDS=1 HARNESS=" + program + " " +
                               script("-o " + folder / "table.txt" + " operations reference"),
                           60);
  EXPECT_EQ(o.exit_code, 1) << o.out << o.err;
  EXPECT_THAT(o.out, HasSubstr("operations against the cpu backend   FAILED"));
  EXPECT_THAT(o.out, HasSubstr("not finished within 1 s; 1 checks passed until then, 0 failed"));
  EXPECT_THAT(o.out, HasSubstr("reference and equalities             passed"));
}

TEST(GpuCheck, KeepsItsBudget) {
  const TemporaryFolder folder;
  const auto program = write_program(folder, "case \"$*\" in *fill*) echo 0.1.0;; *) exec sleep 600;; esac");
  const auto o = test::run("env BACKEND=cpu SECONDS_IN_ALL=12 HARNESS=" + program + " " +
                               script("-o " + folder / "table.txt" + " operations reference"),
                           60);
  EXPECT_EQ(o.exit_code, 1) << o.out << o.err;
  EXPECT_THAT(o.out, HasSubstr("not finished within"));
  EXPECT_THAT(o.out, HasSubstr("not run        0  needs 5 of the 12 seconds in all"));
}

// operations passes, then reference hangs.
std::string program_that_hangs(const TemporaryFolder& folder) {
  return write_program(folder,
                       "case \"$*\" in *reference*) echo 'half a report'; exec sleep 600;; esac\n"
                       "echo 0.1.0\necho '9 checks passed, 0 failed, 0 not run'");
}

TEST(GpuCheck, KilledItLeavesTheFinishedRows) {
  const TemporaryFolder folder;
  const test::Command job("env BACKEND=cpu HARNESS=" + program_that_hangs(folder) + " " +
                          script("-o " + folder / "table.txt --status " + folder / "status.md --keep " +
                                 folder / "kept operations reference"));
  ASSERT_TRUE(job.wait_for("reference and equalities …"));
  job.kill_all(SIGKILL);
  EXPECT_THAT(test::text_of(folder / "table.txt"), HasSubstr("operations against the cpu backend   passed"));
  EXPECT_THAT(test::text_of(folder / "status.md"), HasSubstr("| operations against the cpu backend | passed |"));
  EXPECT_THAT(test::text_of(folder / "kept/operations.txt"), HasSubstr("9 checks passed"));
}

TEST(GpuCheck, InterruptedItEndsItsRowAndWritesTheReports) {
  const TemporaryFolder folder;
  test::Command job("env BACKEND=cpu HARNESS=" + program_that_hangs(folder) + " " +
                    script("-o " + folder / "table.txt" + " operations reference"));
  ASSERT_TRUE(job.wait_for("reference and equalities …"));
  ASSERT_TRUE(test::wait_until([&] { return !job.tagged("600").empty(); }));  // the row is under way
  ::kill(job.pid(), SIGTERM);
  const auto o = job.wait();
  EXPECT_EQ(o.exit_code, 143) << o.err;
  EXPECT_THAT(o.out, HasSubstr("reference and equalities             not run        0  interrupted"));
  EXPECT_THAT(test::text_of(folder / "table.txt"), HasSubstr("---- operations ----\n0.1.0\n9 checks passed"));
  EXPECT_THAT(test::text_of(folder / "table.txt"), HasSubstr("half a report"));
  EXPECT_TRUE(job.leaves_no_process());
}

// A selftest whose steps at micro-batch 32 end with `at_32`; before it they are timed, as all others are, if `timed`.
auto performance_row(const TemporaryFolder& folder, const std::string& at_32, bool timed) {
  const std::string times =
      "while [ \"$1\" != -o ]; do shift; done\n"
      "echo '{\"tokens_per_second\": 100.0}' > \"$2.jsonl\"\n"
      "echo 'step: median 1 s, 100 tokens/s, loss 1'\n";
  const auto program =
      write_program(folder, "arguments=\"$*\"; echo \"$arguments\" >> " + folder / "calls" + "\n" +
                                "case $1 in --version) echo 0.1.0; exit;; esac\n" +
                                "case $arguments in *'--only fill'*) echo 0.1.0; exit;; esac\n" + (timed ? times : "") +
                                "case $arguments in *'--micro-batch 32'*) " + at_32 + ";; esac\n" +
                                (timed ? "" : times) + "echo '1 checks passed, 0 failed, 0 not run'");
  std::ofstream(folder / "nvidia-smi") << "#!/bin/sh\necho 141120\n";
  ::chmod((folder / "nvidia-smi").c_str(), 0755);
  return test::run("env BACKEND=cpu MICRO_BATCH='32 16' PATH=" + folder.path() + ":$PATH HARNESS=" + program + " " +
                   script("-o " + folder / "table.txt --keep " + folder / "kept performance"));
}

TEST(GpuCheck, TriesASmallerMicroBatchAndKeepsTheFiles) {
  const TemporaryFolder folder;
  const auto o = performance_row(folder, "echo 'out of memory' >&2; exit 1", false);
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err;
  EXPECT_THAT(o.out, HasSubstr("micro-batch 16: step: median 1 s, 100 tokens/s; micro-batch 32: exit status 1"));
  EXPECT_THAT(test::text_of(folder / "kept/performance.txt"), HasSubstr("out of memory"));
  EXPECT_THAT(test::text_of(folder / "calls"), HasSubstr("--micro-batch 16 --precision bf16 --tuning"));
  EXPECT_THAT(test::text_of(folder / "calls"), HasSubstr("--tuning-seconds 0"));
}

TEST(GpuCheck, WhatWasTimedIsNotTimedAgainWithASmallerMicroBatch) {
  const TemporaryFolder folder;
  const auto o = performance_row(folder, "echo '0 checks passed, 1 failed, 0 not run'; exit 1", true);
  EXPECT_EQ(o.exit_code, 1) << o.out << o.err;
  EXPECT_THAT(o.out, HasSubstr("micro-batch 32: step: median 1 s, 100 tokens/s; exit status 1; 0 checks passed"));
  EXPECT_EQ(test::text_of(folder / "calls").find("--micro-batch 16"), std::string::npos);
}

// The rows that sweep, on the cpu backend: layouts train alike, and a case that loses a worker fails alone.
TEST(GpuCheck, LayoutsAndAKilledWorkerOnTheCpu) {
  const TemporaryFolder folder;
  const auto o = test::run("env BACKEND=cpu HARNESS=" + test::program_path() + " " +
                               script("-o " + folder / "table.txt" + " layouts killed"),
                           200);
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err;
  EXPECT_THAT(o.out, HasSubstr("9 cases train alike"));
  EXPECT_THAT(o.out, HasSubstr("the case failed, the others ran"));
}

// The same rows on results that are not as they should be; the test above holds what the real ones look like.
struct Seen {
  const char* row;
  const char* status;  // of the case with the fault
  const char* other;   // of the baseline
  const char* reason;  // of the case with the fault
  const char* warning;
  int sweep_exit;
  const char* words;  // in the table; "" when the row passes
};

class GpuCheckSees : public ::testing::TestWithParam<Seen> {};

TEST_P(GpuCheckSees, WhatIsNotAsItShouldBe) {
  const Seen& s = GetParam();
  const TemporaryFolder folder;
  std::ofstream(folder / "result.json") << "{\n  \"name\": \"x\",\n  \"state\": \"complete\",\n  \"cases\": [\n"
                                        << "    {\n      \"name\": \"baseline\",\n      \"status\": \"" << s.other
                                        << "\",\n      \"reason\": \"\",\n    },\n    {\n"
                                        << "      \"name\": \"overlap_grad_reduce=false\",\n      \"status\": \""
                                        << s.status << "\",\n      \"reason\": \"" << s.reason
                                        << "\",\n    }\n  ],\n  \"warnings\": [\n    \"" << s.warning << "\"\n  ]\n}\n";
  const auto program =
      write_program(folder, "case \"$1\" in sweep) exit " + std::to_string(s.sweep_exit) + ";; show) cat " +
                                (folder / "result.json") + ";; *) echo 0.1.0;; esac");
  const auto mpirun = folder / "mpirun";
  std::ofstream(mpirun) << "#!/bin/sh\nshift 2\nexec \"$@\"\n";
  ::chmod(mpirun.c_str(), 0755);
  const auto o = test::run("env BACKEND=cpu HARNESS=" + program + " MPIRUN=" + mpirun + " " +
                           script("-o " + folder / "table.txt" + " " + s.row));
  const bool passes = *s.words == '\0';
  EXPECT_EQ(o.exit_code, passes ? 0 : 1) << o.out << o.err;
  EXPECT_THAT(o.out, HasSubstr(passes ? "passed" : s.words));
}

INSTANTIATE_TEST_SUITE_P(
    Results, GpuCheckSees,
    ::testing::Values(Seen{"layouts", "ok", "ok", "", "", 0, ""}, Seen{"layouts", "ok", "ok", "", "unreliable", 4, ""},
                      Seen{"layouts", "failed", "ok", "", "", 4, "overlap_grad_reduce=false: failed"},
                      Seen{"layouts", "ok", "ok", "", "", 1, "exit status 1"},
                      Seen{"layouts", "ok", "ok", "", "ranks=1 trains differently: its", 0, "trains differently"},
                      Seen{"layouts", "ok", "ok", "not honoured: nccl_algo", "", 0, "not honoured"},
                      Seen{"killed", "failed", "ok", "rank 1 on a: killed", "", 4, ""},
                      Seen{"killed", "ok", "ok", "", "", 0, "expected 4"},
                      Seen{"killed", "failed", "ok", "rank 2 on a: killed", "", 4, "did not fail because of rank 1"},
                      Seen{"absent", "failed", "failed", "rank 1 is not ready", "", 4,
                           "other cases that are not ok: 1"}));

#ifdef HARNESS_HAS_EMULATED_PROGRAM
// A python whose site-packages are `site`. It notes which libraries PyTorch would find.
std::string write_python(const TemporaryFolder& folder, const std::string& site) {
  const std::string path = folder / "python";
  std::ofstream(path) << "#!/bin/sh\ncase \"$*\" in *torch*) echo \"<$LD_LIBRARY_PATH>\" > " << folder / "seen"
                      << " ;; esac\nPYTHONPATH=" << site << " exec python3 \"$@\"\n";
  ::chmod(path.c_str(), 0755);
  return path;
}

TEST(GpuCheck, FindsALibraryInAPackageOfPip) {
  const TemporaryFolder folder;
  const std::filesystem::path pip = folder / "site/nvidia/cu13/lib", program = test::incomplete_program_path();
  std::filesystem::create_directories(pip);
  std::filesystem::copy(program.parent_path() / "elsewhere/libharness_stray.so.13", pip / "libharness_stray.so.13");
  const auto o = test::run("env LD_LIBRARY_PATH=/of/mine HARNESS=" + program.string() +
                           " PYTHON=" + write_python(folder, folder / "site") + " " +
                           script("-o " + folder / "table.txt" + " pytorch"));
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err;  // the module was loaded and its smallest check passed
  EXPECT_THAT(o.out, HasSubstr("tokens/s against PyTorch             not run"));
  EXPECT_EQ(test::text_of(folder / "seen"), "</of/mine>\n");
}

TEST(GpuCheck, AMissingLibraryIsNamedAndIsNotAMissingGpu) {
  const TemporaryFolder folder;
  const auto o = test::run("env LD_LIBRARY_PATH=/of/mine HARNESS=" + test::incomplete_program_path() + " PYTHON=" +
                           write_python(folder, folder / "site") + " " + script("-o " + folder / "table.txt"));
  EXPECT_EQ(o.exit_code, 1) << o.out << o.err;
  EXPECT_THAT(o.err, HasSubstr("the library libharness_stray.so.13 was not found in LD_LIBRARY_PATH (/of/mine"));
  EXPECT_THAT(o.err, Not(HasSubstr("no GPU")));
  EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
}

// The cuda backend itself over stand-ins for device and libraries (but cuDNN: no fused attention), shards included.
TEST(GpuCheck, TheEmulatedCudaBackendPassesItsOperations) {
  const auto o =
      test::run(test::emulated_program_path() +
                " selftest operations --backend cuda --fast --only '37 x 257' --only 'unfused, 1 x 1' --only shard "
                "--only adamw --only record --only '17 x'");
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err;
  EXPECT_THAT(o.out, HasSubstr(" 0 failed, 0 not run"));
}
#endif

}  // namespace
}  // namespace harness
