// Mistakes that other tools made with such traces, and hostile files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "jobs.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/paths.h"
#include "traces/answer.h"
#include "traces/capture.h"

namespace harness::traces {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class Mistakes : public ::testing::Test {
 protected:
  Report read(const std::string& events, const std::string& before = "") {
    return read_job({folder_.write("t.json", trace(events, before))});
  }
  test::TemporaryFolder folder_;
};

TEST_F(Mistakes, CallsOfTheDriverAreLaunches) {
  std::string events = launched("cuda_runtime", "cudaLaunchKernel", 1, 10, "5");
  events += launched("cuda_driver", "cuLaunchKernelEx", 40, 50, "6") + kernel("1", "1");
  const Report report = read(events);
  const auto& idle = report.gpus.at(0).idle_s;
  EXPECT_NEAR(idle[Cause::launch], 10e-6, 1e-9);
  EXPECT_NEAR(idle[Cause::host], 20e-6, 1e-9);
}

TEST_F(Mistakes, LargeStreamsAndCorrelationsAreNumbersLikeOthers) {
  const Report report =
      read(launched("cuda_runtime", "cudaLaunchKernel", 1, 10, "4294967301", "70000") +
           launched("cuda_runtime", "cudaLaunchKernel", 2, 30, "4294967302", "70001") + kernel("1", "1"));
  EXPECT_NEAR(report.gpus.at(0).idle_s[Cause::queued], 18e-6, 1e-9);
}

TEST_F(Mistakes, WaitsAndAnnotationsOnTheGpuAreNoWork) {
  const Report report =
      read(event("cuda_sync", "Stream Sync", "5", "1000", "\"device\": 0, \"stream\": 7") + ",\n" +
           event("gpu_user_annotation", "ProfilerStep#1", "5", "2000", "\"device\": 0, \"stream\": 7") + ",\n" +
           kernel("10", "20"));
  EXPECT_NEAR(report.gpus.at(0).windows.at(0).busy_s, 20e-6, 1e-12);
  EXPECT_NEAR(report.gpus[0].windows[0].step_s, 20e-6, 1e-12);
}

// The profiler used another clock, as for kernels of the previous session.
TEST_F(Mistakes, KernelsHoursAwayAreLeftOut) {
  const Report report =
      read(launched("cuda_runtime", "cudaLaunchKernel", 3.6e9, 3.6e9 + 10, "5") +
           launched("cuda_runtime", "cudaLaunchKernel", 3.6e9 + 50, 10, "6") + kernel("3600000090", "5"));
  EXPECT_EQ(report.gpus.at(0).windows.at(0).kernels, 2);
  EXPECT_THAT(report.notes, Contains(HasSubstr("1 GPU event left out: more than 10 s outside")));
}

// A null rank is taken from the next source: the arguments of a collective on the host. They state the root of a
// broadcast, the peer of a send, and of others the rank within the group.
TEST_F(Mistakes, ARankIsAlsoThatOfACollectivesArguments) {
  const auto call = [](const char* kind, int rank, const char* ranks) {
    return event(
               "cpu_op", "record_param_comms", "5", "1",
               fmt::format(R"("Collective name": "{}", "Rank": {}, "Process Group Ranks": "{}")", kind, rank, ranks)) +
           ",";
  };
  const auto rank = [&](const std::string& calls) {
    return read(calls + event("cpu_op", "aten::mm", "6", "1", R"("Rank": 2)") + "," + kernel("10", "5"),
                "\"distributedInfo\": {\"rank\": null, \"world_size\": 8},\n")
        .gpus.at(0)
        .rank;
  };
  EXPECT_EQ(rank(call("allreduce", 6, "[0, 1, 2, 3, 4, 5, 6, 7]")), 6);
  EXPECT_EQ(rank(call("_allgather_base", 1, "[2, 6]")), 6);
  EXPECT_EQ(rank(call("broadcast", 0, "[2, 6]") + call("send", 0, "[5, 6]") + call("allreduce", 1, "[5, 6]")), 6);
  EXPECT_EQ(rank(call("allreduce", 30, "[0, 1, 2, ...]")), std::nullopt);
}

// Rank 0 also runs a kernel on the GPU of rank 1.
TEST_F(Mistakes, ARankMayUseSeveralGpus) {
  const auto of = [&](int rank, const std::string& more) {
    return folder_.write(fmt::format("{}.json", rank), trace(more + kernel("10", "5"), of_rank(rank)));
  };
  const std::string elsewhere = kernel("12", "5", "nvjet_a", R"("device": 1, "stream": 7)") + ",\n";
  EXPECT_EQ(read_job({of(0, elsewhere), of(1, "")}).gpus.size(), 3u);
}

// It would count as much as the other in the means over the GPUs.
TEST_F(Mistakes, AGpuThatAProcessOnlyTouchedIsLeftOut) {
  const std::string touched = kernel("5", "1", "fill", R"("device": 0, "stream": 7)") + ",\n";
  const Report report = read(touched + kernel("10", "500", "nvjet_a", R"("device": 3, "stream": 7)"));
  ASSERT_EQ(report.gpus.size(), 1u);
  EXPECT_EQ(report.gpus[0].label, "3");
  EXPECT_THAT(report.notes, Contains(HasSubstr("1 GPU left out")));
}

// A report in the closed format is refused with the command to export it.
TEST_F(Mistakes, AReportOfNsightIsNoTextOfUnknownKind) {
  const std::string path = folder_.write("a.nsys-rep", std::string("\1\0NVTX", 6));
  EXPECT_TRUE(is_trace_file(path));
  EXPECT_THAT(test::error_of([&] { read_job({path}); }), HasSubstr("nsys export --type sqlite"));
}

// Profilers of 2020, and tools that cut traces, write only the array of events.
TEST_F(Mistakes, AnArrayOfEventsIsATrace) {
  const std::string own = folder_.write("a.json", "[\n" + kernel("10", "5") + ",\n" + kernel("20", "5") + "\n]\n");
  const std::string other = folder_.write("o.json", "[\n" + event("XLA Ops", "fusion", "1", "2") + "\n]\n");
  EXPECT_TRUE(is_trace_file(own));
  EXPECT_NEAR(read_job({own}).gpus.at(0).windows.at(0).busy_s, 10e-6, 1e-12);
  EXPECT_TRUE(is_trace_file(other));
  EXPECT_THAT(test::error_of([&] { read_job({other}); }), HasSubstr("its categories: XLA Ops"));
  EXPECT_FALSE(is_trace_file(folder_.write("n.json", R"([{"ph": 7.1, "salinity": 3}])")));
}

TEST_F(Mistakes, IdleTimeIsThatOfTheGpuAndNotOfItsStreams) {
  std::string events;
  for (int stream = 0; stream < 4; ++stream)
    events += kernel(std::to_string(10 + 10 * stream), "10", "nvjet_a",
                     fmt::format("\"device\": 0, \"stream\": {}", stream)) +
              ",\n";
  const Report report = read(events + kernel("60", "10"));
  EXPECT_NEAR(report.gpus.at(0).windows.at(0).idle_s, 10e-6, 1e-12);
}

TEST_F(Mistakes, OverlongKernelsOfRocmAreCut) {
  const std::string gpu = R"("deviceProperties": [{"id": 0, "name": "AMD Instinct MI300X"}],)";
  const Report report = read(kernel("10", "5000000") + "," + kernel("30", "10") + "," + kernel("50", "10"), gpu);
  EXPECT_NEAR(report.gpus.at(0).windows.at(0).busy_s, 40e-6, 1e-12);
  EXPECT_THAT(report.notes, Contains(HasSubstr("1 kernel cut where")));
}

TEST_F(Mistakes, KernelsThatRepeatWithoutAnOptimizerAreNoSteps) {
  std::string events;
  for (int i = 0; i < 120; ++i)
    events += kernel(std::to_string(10 * i + 10), "5", fmt::format("gelu{}", i % 30)) + ",\n";
  const evidence::Answer answer = answer_of({read(events + kernel("2000", "1"))});
  EXPECT_THAT(answer.headline, HasSubstr("the kernels repeat every 0.30 ms"));
  EXPECT_THAT(answer.evidence, Contains(std::pair<std::string, std::string>(
                                   "steps",
                                   "3 steps, 0.30 ms to 1.09 ms, by the kernels, which repeat after 30; 1 left "
                                   "out: the first, the last, or unlike these; most have no optimizer")));
}

// ---- steps of several ranks

// Steps of 1 ms. Step N has a kernel of 10 N us, so that the part identifies the shown step.
class StepsOfRanks : public Mistakes {
 protected:
  Report read_ranks(const std::vector<std::pair<int, int>>& steps) {
    std::vector<std::string> paths;
    for (const auto& [first, last] : steps) {
      std::string events;
      for (int n = first; n <= last; ++n) {
        const std::string number = std::to_string(n), at = std::to_string(1000 * n);
        events += event("user_annotation", "ProfilerStep#" + number, at, "990") + ",\n" +
                  event("cuda_runtime", "cudaLaunchKernel", at, "2", "\"correlation\": " + number) + ",\n" +
                  kernel(std::to_string(1000 * n + 100), std::to_string(10 * n), "nvjet_a",
                         R"("device": 0, "stream": 7, "correlation": )" + number) +
                  ",\n";
      }
      const int rank = static_cast<int>(paths.size());
      paths.push_back(folder_.write(fmt::format("{}.json", rank), trace(events + kernel("90000", "1"), of_rank(rank))));
    }
    return read_job(paths);
  }
};

TEST_F(StepsOfRanks, AreTheSameByTheirNumber) {
  // By length alone these would be steps 4, 6 and 6. Each rank's first step and the last, without an end, do not count.
  const Report report = read_ranks({{1, 7}, {3, 9}, {3, 9}});
  for (const TracedGpu& gpu : report.gpus) {
    EXPECT_EQ(gpu.shown.name, "ProfilerStep#4") << gpu.name();
    EXPECT_NEAR(*gpu.step.breakdown[Part::matrix_products], 40e-6, 1e-9) << gpu.name();
  }
  EXPECT_THAT(notes_of(report), Not(Contains(HasSubstr("different steps"))));
}

TEST_F(StepsOfRanks, WithoutACommonNumberAreSaidToDiffer) {
  const Report report = read_ranks({{1, 6}, {7, 12}});
  EXPECT_EQ(report.gpus.at(0).shown.name, "ProfilerStep#3");
  EXPECT_EQ(report.gpus.at(1).shown.name, "ProfilerStep#9");
  EXPECT_THAT(notes_of(report), Contains(HasSubstr("The ranks show different steps")));
}

// ---- before and after

TEST_F(Mistakes, TwoTracesOfARankAreComparedPartByPart) {
  const auto of = [&](const std::string& name, const char* attention, int duration) {
    std::string events;
    for (int i = 0; i < 10; ++i)
      events += kernel(std::to_string(1000 * i + 10), "300") + "," +
                kernel(std::to_string(1000 * i + 350), std::to_string(duration), attention) + ",\n";
    return folder_.write(name, trace(events + kernel("20000", "1"), of_rank(0)));
  };
  const std::vector<Report> reports =
      read_traces({of("a.json", "flash_fwd_sm90", 100), of("b.json", "void fmha_old<float>(int)", 400)});
  ASSERT_EQ(reports.size(), 2u);
  const auto rows = differences_of(reports[0], reports[1]);
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows[0].first, "attention");
  EXPECT_THAT(rows[0].second,
              HasSubstr("+3.00 ms: 1.00 ms to 4.00 ms; flash_fwd_sm90 (1.00 ms) became fmha_old (4.00 ms)"));
  EXPECT_THAT(answer_of(reports).headline, HasSubstr("before"));
}

// ---- what a figure stands for

TEST_F(Mistakes, TheOnlyStepOfAFileThatBreaksOffIsNone) {
  std::string events = event("user_annotation", "ProfilerStep#1", "0", "100") + ",\n";
  for (const int i : {5, 6, 7}) events += launched("cuda_runtime", "cudaLaunchKernel", i, 20 * i, std::to_string(i));
  const std::string whole = trace(events + kernel("900", "1"));
  EXPECT_EQ(read_job({folder_.write("whole.json", whole)}).gpus.at(0).steps.windows.size(), 1u);
  const Report cut = read_job({folder_.write("cut.json", whole.substr(0, whole.rfind("nvjet_a")))});
  EXPECT_TRUE(cut.gpus.at(0).steps.windows.empty());
  EXPECT_THAT(cut.notes, Contains(HasSubstr("cut short")));
}

// One step takes four fifths of the trace: the first compiles, or a middle one writes a checkpoint.
TEST_F(Mistakes, ALongStepDropsNoOtherOfThoseThatRecur) {
  for (const int slow : {0, 3}) {
    std::string events;
    double at_us = 1000;
    for (int i = 0; i < 6; ++i) {
      const double length_us = i == slow ? 20'000 : 1000;
      events += event("user_annotation", "my batch", std::to_string(at_us), std::to_string(length_us - 1)) + ",\n";
      for (int k = 0; k < 3; ++k)
        events += launched("cuda_runtime", "cudaLaunchKernel", at_us + 10 + k, at_us + 100 + 20 * k,
                           std::to_string(100 + 10 * i + k));
      at_us += length_us;
    }
    const Steps steps = read(events + kernel("1", "1")).gpus.at(0).steps;
    EXPECT_EQ(steps.how, "annotations that recur");
    EXPECT_EQ(steps.windows.size(), 5u) << slow;
    EXPECT_TRUE(steps.without_last);
    EXPECT_NEAR(static_cast<double>(steps.windows.at(steps.shown).end_ns - steps.windows[steps.shown].start_ns), 1e6,
                1);
  }
}

TEST_F(Mistakes, ANumberOfAProcessInTheNameIsNoRank) {
  EXPECT_EQ(rank_in_name("run_3.json"), 3);
  EXPECT_EQ(rank_in_name("model__1016002.json.gz"), std::nullopt);
  EXPECT_EQ(rank_in_name("run_3.pt.trace.json"), 3);
  EXPECT_EQ(rank_in_name("node_2566.1773933981558265129.pt.trace.json.gz"), std::nullopt);
}

TEST_F(Mistakes, OfATrainingStepOnePercentWithoutAClassIsNamed) {
  const auto problems = [&](const char* last) {
    const Report report =
        read(kernel("10", "900") + "," + kernel("1000", "20", "mystery") + "," + kernel("1100", "100", last));
    return problems_of(report);
  };
  EXPECT_THAT(problems("multi_tensor_apply_kernel<AdamFunctor>"), Contains(HasSubstr("2.0 % of the kernels' time")));
  EXPECT_THAT(problems("softmax"), Not(Contains(HasSubstr("no class"))));
}

// Kernels of an unknown library on a stream of their own may be communication.
TEST_F(Mistakes, AStreamWithoutClassesMayCommunicate) {
  const auto notes = [&](const char* name) {
    const std::string other = kernel("120", "30", name, R"("device": 0, "stream": 20)");
    return notes_of(read(kernel("10", "90") + "," + other, of_rank(0, 8)));
  };
  EXPECT_THAT(notes("xccl_fabric_sum"), Contains(HasSubstr("have no class, such as 'xccl_fabric_sum'")));
  EXPECT_THAT(notes("xccl_fabric_sum"), Contains(HasSubstr("8 ranks, but no kernel here is known to communicate")));
  EXPECT_THAT(notes("ncclDevKernel_AllGather_RING_LL"), ::testing::ElementsAre(HasSubstr("includes waiting")));
}

// ---- files that mean harm

TEST_F(Mistakes, AnAnswerIsShortWhateverIsInTheFile) {
  std::string events;
  for (int i = 0; i < 50; ++i)
    events += kernel(std::to_string(1000 * i + 10), "300", fmt::format("k{}{}", i, std::string(3000, 'x'))) + ",\n";
  const evidence::Answer answer = answer_of({read(events + kernel("99000", "1"))});
  EXPECT_LE(answer.evidence.size() + answer.problems.size() + answer.notes.size(), 12u);
  for (const std::string& problem : answer.problems) EXPECT_LT(problem.size(), 400u);
}

TEST_F(Mistakes, DamagedAnywhereAFileIsReadOrRefusedInOneLine) {
  const std::string path = test::source_dir() + "/tests/traces/data/made_ddp_rank1.json.gz";
  evidence::Input input(path);
  const std::string packed = test::text_of(path), plain = evidence::whole_text(input, 1 << 26);
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (int round = 0; round < 300; ++round) {
    std::string text = round % 3 == 0 ? packed : plain;
    if (round % 2 == 0) text.resize(below(text.size()));
    for (int flips = round % 5; flips > 0 && !text.empty(); --flips)
      text[below(text.size())] = static_cast<char>(below(256));
    const std::string said = test::error_of([&] { answer_of({read_job({folder_.write("m.json", text)})}); });
    EXPECT_THAT(said, Not(HasSubstr("\n"))) << round;
  }
}

TEST_F(Mistakes, OneBadFileAmongGoodOnesIsNamed) {
  const std::string good = folder_.write("g.json", trace(kernel("10", "5")));
  const Report report = read_job({folder_.write("b.json", "{\"traceEvents\": [}"), good});
  EXPECT_THAT(report.refused, ::testing::ElementsAre(HasSubstr("b.json")));
  EXPECT_EQ(report.gpus.size(), 1u);
}

}  // namespace
}  // namespace harness::traces
