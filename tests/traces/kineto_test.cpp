#include "traces/capture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobs.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/soak.h"

namespace harness::traces {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Kineto : public ::testing::Test {
 protected:
  Capture read(const std::string& text) {
    const std::string path = folder_.write("t.json", text);
    evidence::Input input(path);
    return read_kineto(input, path);
  }
  std::string error(const std::string& text) {
    return test::error_of([&] { read_job({folder_.write("e.json", text)}); });
  }

  test::TemporaryFolder folder_;
};

TEST_F(Kineto, TimesAreNanosecondsWithoutRounding) {
  const Capture c = read(trace(kernel("4887345307045.741", "0.896") + "," + kernel("4887345307047", "2.5"),
                               "\"baseTimeNanoseconds\": 1790857026000000000,\n"));
  ASSERT_EQ(c.devices.size(), 1u);
  EXPECT_EQ(c.devices[0].events[0].start_ns, 1790857026000000000 + 4887345307045741);
  EXPECT_EQ(c.devices[0].events[0].end_ns - c.devices[0].events[0].start_ns, 896);
  EXPECT_EQ(c.devices[0].events[1].end_ns - c.devices[0].events[1].start_ns, 2500);
  EXPECT_THAT(c.notes, IsEmpty());
}

TEST_F(Kineto, OldCategoriesAndStreamsInWords) {
  const Capture c = read(trace(R"({"ph": "X", "cat": "Kernel", "name": "k", "pid": 3, "tid": "stream 20", "ts": 5,
    "dur": 2, "args": {}})"));
  ASSERT_EQ(c.devices.size(), 1u);
  EXPECT_EQ(c.devices[0].id, 3);
  EXPECT_EQ(c.devices[0].events[0].stream, 20u);
}

TEST_F(Kineto, FaultsOfProfilersAreRepaired) {
  const Capture c = read(trace(event("kernel", "a\tb \\q \xff \xc3\xa9", "10", "nan",
                                     R"("device": 0, "Process Group Description": , "x": -inf, "y": [1,], )") +
                               "," + kernel("20", "1") + ",\n"));
  ASSERT_EQ(c.devices.size(), 1u);
  ASSERT_EQ(c.devices[0].events.size(), 2u);
  EXPECT_EQ(c.names[c.devices[0].events[0].name], "a b \\q ? \xc3\xa9");
  EXPECT_THAT(c.notes, ElementsAre(HasSubstr("faults of its JSON repaired")));
}

TEST_F(Kineto, ABareQuoteCostsItsEventAlone) {
  std::string events;
  for (int i = 1; i <= 300; ++i) events += kernel(std::to_string(10 * i), "5", i == 100 ? "a \"b\" c" : "k") + ",\n";
  const Capture c = read(trace(events + kernel("9000", "5"), "\"baseTimeNanoseconds\": 7,\n"));
  EXPECT_EQ(c.devices.at(0).events.size(), 300u);
  EXPECT_EQ(c.devices[0].events[0].start_ns, 10'007);
  EXPECT_THAT(c.notes, ElementsAre("1 damaged event left out."));
}

// Skipped arguments are not parsed: a brace or a quoted quote in them ends nothing. A bare quote costs only its event.
TEST_F(Kineto, ArgumentsThatAreSkippedHideNoEvent) {
  const auto operation = [](const char* inputs) {
    return event("cpu_op", "aten::mm", "5", "2",
                 fmt::format(R"("Concrete Inputs": [{}], "Sequence number": 7)", inputs));
  };
  const std::string sound = operation(R"("}", "{", "\\", "\"]", {"a": []})"), damaged = operation(R"("a"b")");
  const Capture c = read(trace(kernel("10", "5") + ",\n" + sound + ",\n" + kernel("20", "5") + ",\n" + damaged + ",\n" +
                               kernel("30", "5") + ",\n" + sound + "," + kernel("40", "5")));
  EXPECT_EQ(c.devices.at(0).events.size(), 4u);
  EXPECT_THAT(c.notes, ::testing::Contains("1 damaged event left out."));
}

TEST_F(Kineto, CutAnywhereItKeepsWhatCame) {
  std::string events;
  for (int i = 1; i <= 40; ++i) events += (i > 1 ? ",\n" : "") + kernel(std::to_string(10 * i), "5");
  const std::string text = trace(events);
  for (std::size_t size = 0; size < text.size(); size += 37) {
    const std::string said = error(text.substr(0, size));
    EXPECT_THAT(said, Not(HasSubstr("\n")));
    if (size > 400) {
      EXPECT_EQ(said, "") << size;
    }
  }
  EXPECT_THAT(read(text.substr(0, 3000)).notes, ElementsAre(HasSubstr("cut short")));
}

TEST_F(Kineto, WrongTypesAndTimesAreLeftOut) {
  const Capture c =
      read(trace(kernel("1e40", "5") + "," + kernel("\"x\"", "5") + "," + kernel("-7", "5") + "," + kernel("0", "0") +
                 "," + kernel("[1]", "{\"a\": 2}") + "," + kernel("50", "-3") +
                 R"(, {"ph": "X", "cat": 5, "name": null, "args": [1, {"correlation": 7}]}, 5, "x", [])"));
  ASSERT_EQ(c.devices.size(), 1u);
  ASSERT_EQ(c.devices[0].events.size(), 1u);
  EXPECT_EQ(c.devices[0].events[0].end_ns, 50'000);
}

TEST_F(Kineto, WhatIsNoTraceIsRefusedInOneLine) {
  EXPECT_THAT(error(trace(event("XLA Ops", "fusion", "1", "2"))), HasSubstr("its categories: XLA Ops"));
  EXPECT_THAT(error(trace(event("Trace", "PyTorch Profiler (0)", "1", "2") + "," + event("", "aten::mm", "1", "2"))),
              HasSubstr("holds no event of the PyTorch profiler"));
  EXPECT_THAT(error("{\"a\": 1}"), HasSubstr("it is no trace in JSON"));
  EXPECT_THAT(error("hello"), HasSubstr("it is no trace; harness reads"));
  EXPECT_THAT(error(""), HasSubstr("it is empty"));
  EXPECT_THAT(error(std::string(100'000, '[')), HasSubstr("nested more than 64 levels deep"));
  EXPECT_THAT(error(trace(event("cpu_op", "aten::mm", "1", "2"))), HasSubstr("holds no event of the PyTorch profiler"));
  EXPECT_THAT(error(trace(event("user_annotation", "ProfilerStep#1", "1", "2"))), HasSubstr("no kernel ran on a GPU"));
  EXPECT_THAT(error("SQLite format 3\0abc"), HasSubstr("e.json"));
}

// RCCL has one kernel for all collectives, and other libraries use arbitrary names: the arguments define a kernel's
// collective and size.
class KernelOfCollectives : public Kineto, public ::testing::WithParamInterface<const char*> {};

TEST_P(KernelOfCollectives, ArgumentsTellTheCollective) {
  const auto read_as = [&](const std::string& kind, const std::string& type) {
    const std::string arguments = fmt::format(
        R"("device": 0, "stream": 9, "Collective name": "{}", "In msg nelems": 100, "Out msg nelems": 50, "dtype": "{}", )"
        R"("Group size": 8)",
        kind, type);
    const Report report =
        read_job({folder_.write("r.json", trace(kernel("10", "5") + "," + kernel("20", "5", GetParam(), arguments)))});
    EXPECT_NEAR(report.gpus.at(0).windows.at(0).exposed_communication_s, 5e-6, 1e-12);
    EXPECT_NEAR(*report.mean.breakdown[Part::communication], 5e-6, 1e-12);
    EXPECT_THAT(report.gpus[0].unclassified, IsEmpty());
    const Collective& c = report.gpus.at(0).collectives.at(0);
    return fmt::format("{} {}", class_names()[c.kernel_class], c.bytes);
  };
  EXPECT_EQ(read_as("allreduce", "Float"), "comm.allreduce 400");
  EXPECT_EQ(read_as("_allgather_base", "BFloat16"), "comm.allgather 200");
  EXPECT_EQ(read_as("reduce_scatter_tensor_coalesced", "Double"), "comm.reducescatter 800");
  EXPECT_EQ(read_as("all_to_allv", "Float8_e4m3fn"), "comm.alltoall 100");
  EXPECT_EQ(read_as("broadcast", "Bool"), "comm.broadcast 100");
  EXPECT_EQ(read_as("reduce", "Short"), "comm.reduce 200");
  EXPECT_EQ(read_as("recv", "ComplexDouble"), "comm.sendrecv 1600");
  EXPECT_EQ(read_as("barrier", "other"), "comm.generic 0");
}
INSTANTIATE_TEST_SUITE_P(Names, KernelOfCollectives, ::testing::Values("ncclDevKernel_Generic_1", "xccl_fabric_sum"));

TEST_F(Kineto, AComputationWithinACollectiveIsNone) {
  const std::string arguments = R"("Collective name": "allreduce", "In msg nelems": 1, "dtype": "Float")";
  const Report report = read_job(
      {folder_.write("c.json", trace(kernel("10", "5") + "," + kernel("20", "5", "elementwise_kernel", arguments)))});
  EXPECT_EQ(report.gpus.at(0).windows.at(0).communication_s, 0);
}

TEST_F(Kineto, NothingPrivateIsKept) {
  const std::string path =
      folder_.write("p.json", trace(kernel("10", "5") + "," +
                                        event("python_function", "/home/alice/train.py(3): secret", "10", "50") + "," +
                                        event("cpu_op", "aten::secret", "10", "5", R"("Input Dims": [[771177]])") +
                                        "," + event("user_annotation", "x" + std::string(100, 'y') + "tail", "10", "5"),
                                    "\"username\": \"alice\", \"traceName\": \"/home/alice/x.json\",\n"));
  const Report report = read_job({path});
  const std::string json = json_of({report}).dump();
  for (const char* word : {"alice", "secret", "771177", "tail"}) EXPECT_THAT(json, Not(HasSubstr(word)));
}

TEST_F(Kineto, ManyEventsOfOneTimeTakeLittle) {
  const int count = test::sanitized ? 4'000 : 20'000;
  std::string events;
  for (int i = 0; i < count; ++i)
    events += kernel("1000", std::to_string(i % 7 + 1), fmt::format("k{}", i % 50)) + "," +
              event("user_annotation", fmt::format("ProfilerStep#{}", i), "900", "500") + "," +
              event("cuda_runtime", "cudaLaunchKernel", "950", "5", "\"correlation\": 5") + ",\n";
  const Report report = read_job({folder_.write("m.json", trace(events + kernel("2000", "1")))});
  EXPECT_EQ(report.gpus.at(0).windows.at(0).kernels, count + 1);
  EXPECT_LE(report.gpus[0].windows.size(), 2001u);
}

TEST_F(Kineto, ARankOccursOnceAndJobsDoNotMix) {
  const auto of = [&](const std::string& name, int rank, int world, const char* start = "10") {
    return folder_.write(name, trace(kernel(start, "5"), of_rank(rank, world)));
  };
  const std::string a = of("a.json", 0, 8), b = of("b.json", 0, 8, "2000"), c = of("c.json", 1, 4);
  EXPECT_EQ(read_traces({a, b}).size(), 2u);  // before and after
  EXPECT_THAT(test::error_of([&] { read_job({a, b, of("e.json", 0, 8, "4000")}); }), HasSubstr("are both of rank 0"));
  EXPECT_THAT(test::error_of([&] { read_job({a, c}); }), HasSubstr("give the traces of one job"));
  EXPECT_EQ(read_job({of("d.json", 5, 8), a}).gpus.at(0).rank, 0);
  const Report guessed = read_job({folder_.write("run_rank-3.json", trace(kernel("10", "5")))});
  EXPECT_EQ(guessed.gpus.at(0).rank, 3);
  EXPECT_THAT(guessed.notes, ElementsAre(HasSubstr("Its rank, 3, is guessed from the name")));
}

}  // namespace
}  // namespace harness::traces
