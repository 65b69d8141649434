// Time that belongs to a cause, a part or a step, and what it must not be taken for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "jobs.h"
#include "support/files.h"
#include "traces/answer.h"
#include "traces/capture.h"

namespace harness::traces {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class Attribution : public ::testing::Test {
 protected:
  Report read(const std::string& events, const std::string& before = "") {
    return read_job({folder_.write("t.json", trace(events, before))});
  }
  test::TemporaryFolder folder_;
};

struct Gap {
  double us = 0, call_us = 2;  // the gap, and the call of the kernel that ends it, which begins 10 us after the gap
  bool ahead = false;          // the call is earlier than the gap
};

TEST_F(Attribution, WorkThatIsLaunchedAndDoesNotStartIsNoSlowHost) {
  const auto problems = [&](const Gap& gap) {
    std::string events;
    double at_us = 1000;
    for (int i = 0; i < 20; ++i, at_us += 10 + gap.us) {
      events += event("cuda_runtime", "cudaLaunchKernel", std::to_string(gap.ahead ? 1 + i : at_us - gap.us + 10),
                      std::to_string(gap.call_us), "\"correlation\": " + std::to_string(i + 9)) +
                ",\n" +
                kernel(std::to_string(at_us), "10", "nvjet_a",
                       R"("device": 0, "stream": 7, "correlation": )" + std::to_string(i + 9)) +
                ",\n";
    }
    return problems_of(read(events + kernel(std::to_string(at_us), "1", "softmax", R"("device": 0, "stream": 7)")));
  };
  EXPECT_THAT(problems({.us = 5, .ahead = true}), ::testing::ElementsAre(HasSubstr("they are small. Fuse them")));
  EXPECT_THAT(problems({.us = 500, .ahead = true}), ::testing::ElementsAre(HasSubstr("do not start")));
  EXPECT_THAT(problems({.us = 5000}), ::testing::ElementsAre(HasSubstr("do not start")));
  EXPECT_THAT(problems({.us = 5000, .call_us = 4990}), ::testing::ElementsAre(HasSubstr("launches too slowly")));
}

// The profiler of Python writes collections of garbage if asked, and other accelerators have categories of their own
// for calls.
TEST_F(Attribution, CausesOfIdleTimeHaveManyNames) {
  const auto cause = [&](const std::string& events, const char* calls = "cuda_runtime") {
    const auto idle = read(events + ",\n" + event(calls, "launch", "100", "900", "\"correlation\": 5") + ",\n" +
                           kernel("10", "10", "nvjet_a", R"("device": 0, "stream": 7)") + ",\n" + kernel("1000", "10"))
                          .gpus.at(0)
                          .idle_s.of_cause;
    return static_cast<Cause>(std::ranges::max_element(idle) - idle.begin());
  };
  EXPECT_EQ(cause(event("overhead", "Buffer Flush", "110", "880")), Cause::launch);
  EXPECT_EQ(cause(event("overhead", "Buffer Flush", "110", "880"), "xpu_runtime"), Cause::launch);
  EXPECT_EQ(cause(event("cpu_op", "aten::mm", "110", "880"), "other"), Cause::unknown);
  EXPECT_EQ(cause(event("python_function", "Python GC", "20", "880") + ",\n" +
                      event("cuda_runtime", "launch", "950", "5", "\"correlation\": 5"),
                  "other"),
            Cause::garbage);
}

TEST_F(Attribution, AStepOfCopiesIsNamed) {
  const std::string copy = event("gpu_memcpy", "Memcpy HtoD", "200", "300", R"("device": 0, "stream": 9)");
  EXPECT_THAT(problems_of(read(kernel("100", "100") + "," + copy + "," + kernel("500", "100"))),
              Contains(HasSubstr("only copies for 60.0 % of the step")));
}

// A kernel of sends and receives is that of an all-to-all too. Between two ranks it is no pipeline.
TEST_F(Attribution, AnAllToAllIsNoPipeline) {
  std::vector<std::string> paths;
  for (int rank = 0; rank < 2; ++rank) {
    std::string events;
    for (int i = 0; i < 6; ++i)
      events += kernel(std::to_string(1000 * i + 10), std::to_string(100 + 500 * rank)) + ",\n" +
                kernel(std::to_string(1000 * i + 110 + 500 * rank), std::to_string(700 - 500 * rank),
                       "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
                       R"("device": 0, "stream": 20, "Collective name": "all_to_allv")") +
                ",\n";
    paths.push_back(folder_.write(fmt::format("{}.json", rank), trace(events + kernel("9000", "1"), of_rank(rank))));
  }
  const analysis::Breakdown mean = read_job(paths).mean.breakdown;
  EXPECT_NEAR(mean[Part::waiting].value_or(0), 6 * 0.25e-3, 1e-8);
  EXPECT_FALSE(mean[Part::bubble]);
}

// A step that is marked alone begins with the host's work, such as loading, and ends with it.
TEST_F(Attribution, TheOnlyStepHasTheTimeOfItsHost) {
  const std::string call = event("cuda_runtime", "cudaLaunchKernel", "700", "5", "\"correlation\": 5");
  const auto read_step = [&](const std::string& before) {
    return read(before + event("user_annotation", "ProfilerStep#1", "100", "900") + ",\n" +
                event("cpu_op", "enumerate(DataLoader)#_Iter.__next__", "110", "500") + ",\n" + call + ",\n" +
                kernel("710", "200"))
        .gpus.at(0)
        .step;
  };
  const TimedStep step = read_step("");
  EXPECT_NEAR(step.breakdown.step_s, 900e-6, 1e-9);
  EXPECT_NEAR(*step.breakdown[Part::loading], 500e-6, 1e-9);
  EXPECT_NEAR(step.idle_s[Cause::host], 190e-6, 1e-9);  // 100 before, 90 at its end
  const std::string earlier = kernel("50", "400", "nvjet_b", R"("device": 0, "stream": 7)") + ",\n";
  EXPECT_NEAR(read_step(earlier).breakdown.step_s, 550e-6, 1e-9);  // the step before still runs
}

// Four micro-batches a step, each marked or annotated.
TEST_F(Attribution, MicroBatchesAreNoSteps) {
  const auto steps = [&](const char* mark) {
    std::string events;
    for (int i = 0; i < 16; ++i) {
      const double at_us = 1000 * (i + 1);
      events += event("user_annotation", fmt::format(fmt::runtime(mark), i), std::to_string(at_us), "990") + ",\n";
      for (int k = 0; k < 30; ++k)
        events += launched("cuda_runtime", "cudaLaunchKernel", at_us + 10 + k, at_us + 20 + 30 * k,
                           std::to_string(100 * i + k + 9));
      if (i % 4 == 3)
        events += event("cuda_runtime", "cudaLaunchKernel", std::to_string(at_us + 900), "2",
                        fmt::format("\"correlation\": {}", 100 * i + 99)) +
                  ",\n" +
                  kernel(std::to_string(at_us + 950), "9", "fused_adam",
                         fmt::format(R"("device": 0, "stream": 7, "correlation": {})", 100 * i + 99)) +
                  ",\n";
    }
    return read(events + kernel("17500", "1")).gpus.at(0).steps;
  };
  EXPECT_EQ(steps("micro-batch {}").how, "the kernels, which repeat after 121");
  EXPECT_TRUE(steps("ProfilerStep#{}").no_optimizer);
}

// Only the first rank marks its steps. The third was traced at another time.
TEST_F(Attribution, AGpuWithoutStepsShowsThatOfAnother) {
  std::vector<std::string> paths;
  for (int rank = 0; rank < 3; ++rank) {
    std::string events;
    for (int i = 1; i <= 5; ++i) {
      const double at_us = 1000 * i + (rank == 2 ? 1e6 : 0);
      if (rank == 0)
        events += event("user_annotation", fmt::format("ProfilerStep#{}", i), std::to_string(at_us), "990") + ",\n";
      events += launched("cuda_runtime", "cudaLaunchKernel", at_us + 5, at_us + 100, std::to_string(i));
    }
    paths.push_back(
        folder_.write(fmt::format("{}.json", rank), trace(events + R"({"ph": "M", "name": "end"})", of_rank(rank))));
  }
  const Report report = read_job(paths);
  ASSERT_EQ(report.gpus.size(), 2u);
  EXPECT_EQ(report.gpus[1].shown.start_ns, report.gpus[0].shown.start_ns);
  EXPECT_NEAR(report.mean.breakdown.step_s, 1e-3, 1e-9);
  EXPECT_THAT(notes_of(report), Contains(HasSubstr("1 GPU left out: without a step")));
}

// DDP's buckets let computation hide gradients, not sends, which may wait for another stage.
TEST_F(Attribution, SendsAreNoGradients) {
  const auto events = [](const char* name, int length) {
    return kernel("10", "100", "multi_tensor_apply_kernel<AdamFunctor>") + "," +
           kernel("200", std::to_string(length), name, R"("device": 0, "stream": 20)");
  };
  EXPECT_THAT(problems_of(read(events("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 100))),
              Contains(HasSubstr("run alone")));
  const auto sends = [&](int length) { return trace(events("ncclDevKernel_SendRecv(int)", length), of_rank(length)); };
  const Report report = read_job({folder_.write("0.json", sends(100)), folder_.write("1.json", sends(400))});
  EXPECT_THAT(problems_of(report), ::testing::Not(Contains(HasSubstr("run alone"))));
  EXPECT_THAT(notes_of(report), Contains(HasSubstr("Sends and receives, 0.25 ms, include waiting")));
}

}  // namespace
}  // namespace harness::traces
