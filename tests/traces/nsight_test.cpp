#include "traces/capture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "jobs.h"
#include "support/errors.h"
#include "support/files.h"
#ifdef HARNESS_HAS_SQLITE3
#include <sqlite3.h>

namespace harness::traces {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::int64_t ms = 1'000'000;

// A minimal export of Nsight Systems.
class Nsight : public ::testing::Test {
 protected:
  // Returns the path of a new database.
  std::string write(const std::string& sql, const std::string& name = "") {
    const std::string path = folder_ / (name.empty() ? fmt::format("{}.sqlite", ++files_) : name);
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
    sqlite3_close(database);
    return path;
  }
  Report read(const std::string& sql) { return read_job({write(schema() + sql)}); }

  static std::string schema() {
    return "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
           "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.25.0'), ('EXPORT_PRODUCT_VERSION', "
           "'2026.2');"
           "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
           "INSERT INTO StringIds VALUES (1, 'nvjet_tst_192x192'), (2, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL'),"
           " (3, 'cudaLaunchKernel_v7000'), (4, 'x''); DROP TABLE StringIds; --');"
           "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,"
           " correlationId INTEGER, globalPid INTEGER, demangledName INTEGER);"
           "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,"
           " correlationId INTEGER, nameId INTEGER);"
           "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER,"
           " textId INTEGER);";
  }

  // Steps of 10 ms: a kernel that computes for `compute` ms, then an all-reduce that ends at 9 ms on all ranks.
  static std::string job(int process, double compute, int steps) {
    std::string sql;
    const auto ns = [](double at) { return std::llround(at * ms); };
    const std::int64_t pid = static_cast<std::int64_t>(process) << 24;
    for (int s = 0; s < steps; ++s) {
      const double t = 100 + 10 * s;
      const auto kernel = [&](double from, double to, int stream, int name) {
        const int correlation = 10 * s + name;
        sql += fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, 0, {}, {}, {}, {});", ns(t + from),
                           ns(t + to), stream, correlation, pid, name);
        sql += fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, {}, {}, 3);", ns(t + 0.1),
                           ns(t + 0.11), pid + 5, correlation);
      };
      kernel(0.2, 0.2 + compute, 7, 1);
      kernel(0.3 + compute, 9, 20, 2);
      sql += fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, 'train.training_step_{}', {}, NULL);", ns(t),
                         ns(t + 9.9), s, pid + 5);
    }
    return sql;
  }

  test::TemporaryFolder folder_;
  int files_ = 0;
};

TEST_F(Nsight, ReadsKernelsCallsAndSteps) {
  const Report report = read(job(1, 4, 6));
  ASSERT_EQ(report.gpus.size(), 1u);
  const TracedGpu& gpu = report.gpus[0];
  EXPECT_EQ(gpu.version, "2026.2");
  EXPECT_EQ(gpu.steps.how, "NVTX ranges");
  ASSERT_EQ(gpu.windows.size(), 1u + 6 + 5);
  EXPECT_EQ(gpu.windows[7].window, "device:training_step_0");
  EXPECT_NEAR(gpu.step.breakdown.step_s, 10e-3, 1e-9);
  EXPECT_NEAR(*gpu.step.breakdown[Part::matrix_products], 4e-3, 1e-9);
  EXPECT_NEAR(*gpu.step.breakdown[Part::communication], 4.7e-3, 1e-9);
  EXPECT_NEAR(gpu.step.idle_s[Cause::queued], 0.1e-3, 1e-9);
}

TEST_F(Nsight, ProcessesOfOneFileDoNotMix) {
  const Report report = read(job(1, 4, 6) + job(2, 4.2, 6) + job(3, 6, 6));
  ASSERT_EQ(report.gpus.size(), 3u);
  EXPECT_EQ(report.gpus[2].label, "0/3");
  EXPECT_THAT(report.meetings.all, SizeIs(6));
  EXPECT_NEAR(*report.gpus[0].step.breakdown[Part::waiting], 2e-3, 1e-9);
  EXPECT_NEAR(*report.gpus[2].step.breakdown[Part::waiting], 0, 1e-9);
  ASSERT_EQ(report.late.size(), 1u);
  EXPECT_EQ(report.late[0].gpu, 2u);
  EXPECT_GT(report.late[0].compute_share, 0.4);
  EXPECT_THAT(problems_of(report), ::testing::Contains(HasSubstr("is late: last in 6 of 6 collectives")));
}

// The process of rank 3 also clears memory on GPU 1, where it runs no kernel.
TEST_F(Nsight, AGpuWithoutAKernelIsNoRank) {
  const std::string touched =
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,"
      " correlationId INTEGER, globalPid INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (100000000, 100001000, 1, 7, 777, 16777216);";
  const Report report = read_job({write(schema() + job(1, 4, 6) + touched, "job_rank3.sqlite")});
  ASSERT_EQ(report.gpus.size(), 1u);
  EXPECT_EQ(report.gpus[0].rank, 3);
}

// A graph's kernels carry the correlation of its launch. The driver call within a runtime call may have it as well.
TEST_F(Nsight, OneCallLaunchesManyKernelsAndOfTwoCallsTheFirst) {
  const Capture capture =
      read_nsight(write(schema() + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (500, 600, 0, 7, 9, 16777216, 1),"
                                   " (700, 800, 0, 7, 9, 16777216, 1), (900, 950, 0, 7, 4, 16777216, 1);"
                                   "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (110, 150, 16777221, 9, 3),"
                                   " (100, 200, 16777221, 9, 3), (120, 130, 33554437, 4, 3);"));
  const std::vector<GpuEvent>& events = capture.devices.at(0).events;
  EXPECT_EQ(events.at(0).launch_ns, 100);
  EXPECT_EQ(events.at(1).launch_ns, 100);
  EXPECT_FALSE(events.at(2).is_launched());  // the call belongs to another process
}

// A file has millions of launches and queries: only calls that may cause idle time are kept.
TEST_F(Nsight, CallsThatOnlyLaunchAreNotKept) {
  const std::string path =
      write(schema() + job(1, 4, 3) +
            "INSERT INTO StringIds VALUES (5, 'cudaStreamSynchronize_v3020'), (6, 'cudaMalloc_v3020'),"
            " (7, 'cuModuleLoadData'), (8, 'cudaEventQuery_v3020');"
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 9, 16777221, 0, 5),"
            " (10, 12, 16777221, 0, 6), (13, 14, 16777221, 0, 7), (15, 16, 16777221, 0, 8);");
  std::vector<std::optional<Cause>> causes;
  for (const HostRange& range : read_nsight(path).ranges) causes.push_back(range.cause);
  using enum Cause;
  EXPECT_THAT(causes, ElementsAre(synchronised, allocation, module, std::nullopt, std::nullopt, std::nullopt));
}

TEST_F(Nsight, MissingColumnsAndTablesReadAsNothing) {
  const Report report =
      read_job({write("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
                      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER);"
                      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 10), ('text', x'00ff'), (9, 2), (-4, 7),"
                      " (9e300, 9e300), (NULL, NULL);")});
  ASSERT_EQ(report.gpus.size(), 1u);
  EXPECT_EQ(report.gpus[0].windows.at(0).busy_s, 5e-9);
}

// 40 MB of strings before the kernels' names, referenced only by tables that are not read.
TEST_F(Nsight, StringsOfOthersAreNotKeptAndDisplaceNoKernel) {
  const std::string path = write(schema() + job(1, 4, 6) +
                                 "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 20000)"
                                 "INSERT INTO StringIds SELECT -x, 'secret' || x || hex(zeroblob(1000)) FROM n;");
  EXPECT_NEAR(*read_job({path}).gpus.at(0).step.breakdown[Part::matrix_products], 4e-3, 1e-9);
  const Capture capture = read_nsight(path);
  for (std::uint32_t i = 0; i < capture.names.size(); ++i) EXPECT_THAT(capture.names[i], Not(HasSubstr("secret")));
}

// Versioned tables and short names. Without globalPid, everything belongs to one process. An id without a text is no
// name.
TEST_F(Nsight, OtherSchemasGiveTheSameAnswer) {
  for (const char* other : {"ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN demangledName TO shortName;"
                            "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO CUPTI_ACTIVITY_KIND_KERNEL_V3;"
                            "ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME RENAME TO CUPTI_ACTIVITY_KIND_RUNTIME_V2;"
                            "ALTER TABLE NVTX_EVENTS RENAME TO NVTX_EVENTS_V2;",
                            "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid;",
                            "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN shortName INTEGER;"
                            "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET shortName = demangledName, demangledName = 0 "
                            "WHERE streamId = 7;"}) {
    const TracedGpu gpu = read(job(1, 4, 6) + other).gpus.at(0);
    EXPECT_EQ(gpu.steps.how, "NVTX ranges") << other;
    EXPECT_NEAR(*gpu.step.breakdown[Part::matrix_products], 4e-3, 1e-9) << other;
    EXPECT_NEAR(gpu.step.idle_s[Cause::queued], 0.1e-3, 1e-9) << other;
    EXPECT_THAT(gpu.unclassified, ::testing::IsEmpty()) << other;
  }
}

TEST_F(Nsight, LossesThatTheProfilerReportsAreNoted) {
  const Report report = read(job(1, 4, 6) +
                             "CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER, severity INTEGER, text TEXT);"
                             "INSERT INTO DIAGNOSTIC_EVENT VALUES (1, 2, 'Process 12 of alice was launched'),"
                             " (2, 3, 'Not all CUDA events might have been collected, see /home/alice/log.');");
  EXPECT_THAT(report.notes, ::testing::Contains(HasSubstr("Not all CUDA events")));
  EXPECT_THAT(report.notes, Not(::testing::Contains(HasSubstr("alice"))));
}

// CUDA loads code in a launch, 0.02 ms of the gap before the next kernel; the profiler flushes buffers.
TEST_F(Nsight, OverheadIsTheProfilersOrTheLoadingOfCode) {
  const Report report = read(
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100000, 200000, 0, 7, 1, 16777216, 1),"
      " (300000, 400000, 0, 7, 2, 16777216, 1);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (50000, 60000, 16777221, 1, 3),"
      " (290000, 295000, 16777221, 2, 3);"
      "CREATE TABLE PROFILER_OVERHEAD (start INTEGER, end INTEGER, overheadType INTEGER);"
      "INSERT INTO PROFILER_OVERHEAD VALUES (210000, 220000, 0);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_OVERHEAD (start INTEGER, end INTEGER, globalTid INTEGER,"
      " overheadType INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_OVERHEAD VALUES (220000, 230000, 16777221, 3),"
      " (230000, 250000, 16777221, 7), (250000, 290000, 16777221, 8);");
  const IdleTimes& idle_s = report.gpus.at(0).idle_s;
  EXPECT_NEAR(idle_s[Cause::profiler], 20e-6, 1e-12);
  EXPECT_NEAR(idle_s[Cause::module], 20e-6, 1e-12);
  EXPECT_NEAR(idle_s[Cause::host], 50e-6, 1e-12);
}

// Ranges of optimizer steps lie within training steps, each with its own kernel.
TEST_F(Nsight, StepsWithinStepsAreNone) {
  std::string sql = job(1, 4, 6);
  for (int s = 0; s < 6; ++s) {
    const std::int64_t t = (100 + 10 * s) * ms;
    sql += fmt::format(
        "INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, 'optimizer.step {}', 16777221, NULL);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, 0, 7, {}, 16777216, 1);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, 16777221, {}, 3);",
        t + 8 * ms, t + 95 * ms / 10, s, t + 93 * ms / 10, t + 96 * ms / 10, 10 * s + 9, t + 82 * ms / 10,
        t + 83 * ms / 10, 10 * s + 9);
  }
  const TracedGpu gpu = read(sql).gpus.at(0);
  EXPECT_EQ(gpu.steps.windows.size(), 5u);
  EXPECT_NEAR(gpu.step.breakdown.step_s, 10e-3, 1e-9);
}

TEST_F(Nsight, TheAnswerSaysWhichStepsCount) {
  const auto steps = [&](const std::string& sql) {
    for (const auto& [label, text] : answer_of({read(sql)}).evidence) {
      if (label == "steps") return text;
    }
    return std::string();
  };
  const std::string one_more =
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (136000000, 136100000, 0, 7, 99, 16777216, 1);";
  const std::string others = "by NVTX ranges; 2 left out: the first, the last, or unlike these";
  EXPECT_EQ(steps(job(1, 4, 6)), "4 steps, 10.0 ms to 10.0 ms, " + others);
  EXPECT_THAT(steps(job(1, 4, 3)), HasSubstr("2 steps, 10.0 ms to 10.0 ms, by NVTX ranges; 1 left out"));
  EXPECT_EQ(steps(job(1, 4, 1)), "1 step, by NVTX ranges");
  EXPECT_THAT(steps(job(1, 4, 6) + one_more), HasSubstr("; 3 left out"));
  EXPECT_EQ(steps(job(1, 4, 6) + "DELETE FROM NVTX_EVENTS;"), "none found: all figures are of the whole trace");
}

// Schemas 2.x and 3.x are known; others are read with a note.
TEST_F(Nsight, ASchemaThatIsNotKnownIsNoted) {
  for (const auto& [version, known] : std::initializer_list<std::pair<const char*, bool>>{
           {"1.8.4", false}, {"2.9.1", true}, {"3.0.0", true}, {"3.25.0", true}, {"4.0.0", false}, {"new", false}}) {
    const Report report =
        read(job(1, 4, 6) +
             fmt::format("UPDATE META_DATA_EXPORT SET value = '{}' WHERE name = 'EXPORT_SCHEMA_VERSION';", version));
    const std::string note = fmt::format("Its schema, '{}', is not known to harness.", version);
    EXPECT_EQ(std::ranges::count(report.notes, note), known ? 0 : 1) << version;
    EXPECT_EQ(report.gpus.at(0).steps.windows.size(), 5u) << version;
  }
}

TEST_F(Nsight, SqlInNamesIsText) {
  const std::string path =
      write(schema() + job(1, 4, 3) +
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (110000000, 110000001, 0, 7, 99, 16777216, 4);"
            "CREATE TABLE \"NVTX_EVENTS\"\"; DROP TABLE StringIds; --\" (a INTEGER);");
  const Report report = read_job({path});
  EXPECT_THAT(report.gpus.at(0).unclassified.at(0).name, HasSubstr("DROP TABLE"));
  EXPECT_NO_THROW(read_job({path}));
}

TEST_F(Nsight, OtherDatabasesAreNamed) {
  const auto error = [&](const std::string& sql) { return test::error_of([&] { read_job({write(sql)}); }); };
  EXPECT_THAT(error("CREATE TABLE a (b);"), HasSubstr("but no export of Nsight Systems"));
  EXPECT_THAT(error(schema()), HasSubstr("no kernel ran on a GPU"));
  // A view with an endless query does not count as a table.
  EXPECT_THAT(error("CREATE TABLE StringIds (id INTEGER, value TEXT); CREATE TABLE META_DATA_EXPORT (name, value);"
                    "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 "
                    "FROM c) SELECT x AS start, x AS end FROM c;"),
              HasSubstr("no kernel ran on a GPU"));
}

TEST_F(Nsight, AGraphThatIsOneEventIsNoIdleTime) {
  const Report report =
      read(job(1, 4, 3) +
           "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER,"
           " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphExecId INTEGER);"
           "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (130000000, 150000000, 0, 7, 900, 16777216, 3);");
  const Figures& all = report.gpus.at(0).windows.at(0);
  EXPECT_NEAR(all.busy_s, 3 * 8.7e-3 + 20e-3, 1e-9);
  EXPECT_THAT(report.notes, ::testing::Contains(HasSubstr("--cuda-graph-trace=node")));
}

TEST_F(Nsight, DamagedDatabasesAreReadOrRefusedInOneLine) {
  const std::string whole = test::text_of(write(schema() + job(1, 4, 20) + job(2, 4.2, 20)));
  std::mt19937 random(3);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (int round = 0; round < 100; ++round) {
    std::string text = whole;
    if (round % 2 == 0) text.resize(100 + below(text.size() - 100));
    for (int flips = 0; flips < round % 20; ++flips) text[16 + below(text.size() - 16)] = static_cast<char>(below(256));
    const std::string said = test::error_of([&] { read_job({folder_.write("m.sqlite", text)}); });
    EXPECT_THAT(said, Not(HasSubstr("\n"))) << round;
  }
}

}  // namespace
}  // namespace harness::traces
#endif
