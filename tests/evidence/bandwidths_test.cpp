// Outputs of nccl-tests and the OSU micro-benchmarks: the collective, the number of ranks, and the correctness check.
#include <gmock/gmock.h>

#include "base/text.h"
#include "evidence/answer.h"
#include "evidence/expectations.h"
#include "support/files.h"

namespace harness::test {
namespace {

using evidence::Answer;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<Answer> read_text(const std::string& text) {
  static const TemporaryFolder scratch;
  return evidence::read_files({scratch.write("text", text)}, {});
}

// An output for nodes of 8 GPUs. `columns` stand between the count and the two directions with `algbw` and `busbw` in
// GB/s; `checks` are the last column of each direction.
struct Table {
  std::string names = "type redop root", columns = "float sum -1";
  double algbw = 100, busbw = 187.5;
  std::pair<std::string, std::string> checks = {"0", "0"};
  std::string last_name = "#wrong", end = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 100 \n";
  int groups = 1, ranks = 16;

  std::string text() const {
    std::string all = "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20\n";
    for (int rank = 0; rank < ranks; ++rank)
      all += fmt::format("#  Rank {} Group {} Pid 1 on n{} device {} [0x15] NVIDIA H100 80GB HBM3\n", rank,
                         rank % groups, rank / 8, rank % 8);
    all += fmt::format("#  size count {0}  time algbw busbw {1}  time algbw busbw {1}\n", names, last_name);
    const auto direction = [&](const std::string& check) {
      return fmt::format(" 10737.4 {} {} {}", algbw, busbw, check);
    };
    return all + fmt::format("1073741824 268435456 {}{}{}\n{}", columns, direction(checks.first),
                             direction(checks.second), end);
  }
};

TEST(Bandwidths, EachRunInATextHasTheNameBeforeIt) {
  const std::string second = Table{.columns = "float none -1", .busbw = 93.75}.text();
  for (const auto& [before, between] :
       {std::pair("$ ./all_reduce_perf -g 8\n", "$ ./all_gather_perf -g 8\n"),
        {"# Collective test starting: all_reduce_perf\n", "# Collective test starting: all_gather_perf\n"}}) {
    const auto answers = read_text(before + Table{}.text() + between + second);
    ASSERT_EQ(answers.size(), 2u);
    EXPECT_EQ(fact(answers[0], "test"), "all_reduce");
    EXPECT_EQ(fact(answers[1], "test"), "all_gather");
    for (const auto& [label, text] : answers[1].evidence) EXPECT_THAT(label, Not(HasSubstr("before")));
  }
}

TEST(Bandwidths, AnUnnamedTestIsToldByItsColumns) {
  const std::pair<std::string, std::string> outside_only = {"0", "N/A"};
  const std::pair<Table, const char*> tables[] = {
      {{}, "all_reduce"},
      {{.names = "type redop", .columns = "float sum"}, "all_reduce"},
      {{.busbw = 93.75}, "reduce_scatter"},
      {{.columns = "float none -1", .busbw = 93.75}, "all_gather"},
      {{.names = "type", .columns = "float", .busbw = 93.75}, "all_gather"},
      {{.columns = "float none -1", .busbw = 93.75, .checks = outside_only}, "alltoall"},
      {{.names = "type redop", .columns = "float", .busbw = 93.75, .checks = outside_only}, "alltoall"},
      {{.columns = "float none -1", .busbw = 93.75, .checks = {"N/A", "N/A"}}, ""},
      {{.columns = "float none 0", .busbw = 93.75}, ""},
      {{.columns = "float none 0", .busbw = 100}, "broadcast"},
      {{.names = "type root", .columns = "float 0", .busbw = 100}, "broadcast"},
      {{.columns = "float sum 0", .busbw = 100}, "reduce"},
      {{.columns = "float none -1", .busbw = 100, .checks = outside_only}, "sendrecv"},
      {{.busbw = 100, .checks = outside_only, .ranks = 2}, "sendrecv"},
      {{.busbw = 100, .ranks = 2}, "all_reduce"}};
  for (const auto& [table, collective] : tables) {
    const std::string expected = *collective == '\0' ? "unknown" : fmt::format("unknown ({} by its shape", collective);
    EXPECT_EQ(fact(answer_to(table.text()), "test").substr(0, expected.size()), expected) << table.text();
  }
  const Table pair{.busbw = 100, .checks = outside_only, .ranks = 2};
  EXPECT_THAT(fact(answer_to(pair.text()), "test"), HasSubstr("busbw / algbw = 1.00 = 1)"));
}

TEST(Bandwidths, TheProgramItselfSaysWhetherDifferencesAreErrors) {
  const auto wrong = [](const char* difference, const char* verdict) {
    const Answer answer =
        answer_to(Table{.checks = {difference, difference}, .last_name = "error", .end = verdict}.text());
    EXPECT_EQ(answer.headline.starts_with("wrong results"), fact(answer, "wrong") != "0");
    return fact(answer, "wrong");
  };
  EXPECT_EQ(wrong("2e-02", "# Out of bounds values : 0 OK\n"), "0");
  EXPECT_EQ(wrong("1e-06", "# Out of bounds values : 3 FAILED\n"), "3");
  EXPECT_EQ(wrong("2e-02", ""), "1");  // the output was truncated
  EXPECT_EQ(fact(answer_to(Table{.checks = {"3", "4"}}.text()), "wrong"), "7");
}

TEST(Bandwidths, TheOutputOf2017IsRead) {
  const Answer answer = answer_to(
      "# NCCL Tests compiled with NCCL 2.1\n# Using devices\n#   Rank  0 on  d device  0 [0x06] Tesla P100\n"
      "#   Rank  1 on  d device  1 [0x07] Tesla P100\n\n#  bytes  N  type  op  time  algbw  busbw  res  time  "
      "algbw  "
      "busbw  res\n 1048576 262144 float sum 100.0 10.49 10.49 1e+00 100.0 10.49 10.49 1e+00\n"
      " Out of bounds values : 2 FAILED\n Avg bus bandwidth    : 10.5 \n");
  EXPECT_EQ(fact(answer, "ranks"), "2");
  EXPECT_EQ(fact(answer, "peak_busbw"), "10.5 GB/s at 1048576 B");
  EXPECT_EQ(fact(answer, "wrong"), "2");
}

// nccl-tests lists the first device of each process, within the configuration.
TEST(Bandwidths, JsonListsOneDeviceOfEachProcess) {
  const auto ranks = [](int processes, int each) {
    std::string devices;
    for (int i = 0; i < processes; ++i)
      devices += fmt::format(R"({}{{"rank": {}, "pid": {}, "hostname": "n{}", "device_info": "NVIDIA B200"}})",
                             i > 0 ? ", " : "", i * each, 70 + i, i / 2);
    const std::string text = fmt::format(
        R"({{"nccl_version": 22907, "args": ["all_reduce_perf"], "config": {{"nthreads": 1, "ngpus": {}, "devices": [{}]}},)"
        R"( "results": [{{"size": 8, "out_of_place": {{"time": 9.0, "alg_bw": 4.0, "bus_bw": 7.0, "nwrong": 0}}}}]}})",
        each, devices);
    return fact(answer_to(text), "ranks");
  };
  EXPECT_EQ(ranks(1, 8), "8");
  EXPECT_EQ(ranks(4, 2), "8");
  EXPECT_EQ(ranks(4, 1), "4");
}

// -d all, -o all and cycles (-N) repeat the sizes within one table.
TEST(Bandwidths, OfSizesThatRecurTheBestCounts) {
  const auto row = [](int mega, const char* type, double algbw, int wrong = 0) {
    const std::string direction = fmt::format(" 10737.4 {} {} {}", algbw, algbw * 1.875, wrong);
    return fmt::format("{} {} {}{}{}\n", mega << 20, mega << 18, type, direction, direction);
  };
  const std::string head = Table{.end = ""}.text(), before = head.substr(0, head.rfind("1073741824 "));
  const Answer answer =
      answer_to(before + row(64, "int8 sum -1", 60) + row(128, "int8 sum -1", 80) + row(256, "int8 sum -1", 90, 3) +
                row(64, "half sum -1", 70) + row(128, "half sum -1", 85) + row(256, "half sum -1", 80));
  EXPECT_EQ(fact(answer, "peak_busbw"), "168.8 GB/s at 268435456 B");
  EXPECT_EQ(fact(answer, "dips"), "none");
  EXPECT_EQ(fact(answer, "wrong"), "6");
  EXPECT_THAT(answer.notes, Contains(HasSubstr("the best of each counts")));
  const auto rows = std::ranges::find(answer.facts, "by_size", [](const auto& one) { return one.first; });
  EXPECT_EQ(rows->second.size(), 3u);
}

// Collectives that divide the size among ranks round the smallest ones down to nothing.
TEST(Bandwidths, SizesOfNothingAreNoRepetition) {
  const std::string nothing = "0 0 float sum -1 1.6 0.00 0.00 0 1.6 0.00 0.00 0\n";
  std::string text = Table{}.text();
  text.insert(text.rfind("1073741824 "), nothing + nothing);
  EXPECT_THAT(answer_to(text).notes, Not(Contains(HasSubstr("several times"))));
}

TEST(Bandwidths, ATestThatBrokeOffIsToldWithItsError) {
  const std::string head = Table{.end = ""}.text(),
                    error =
                        "n0: Test NCCL failure common.cu:954 'unhandled cuda error / '\n .. n0 pid 1: Test failure\n";
  const Answer late = answer_to(head + error);
  EXPECT_THAT(late.headline, AllOf(HasSubstr("peak 188 GB/s"), HasSubstr("the test broke off behind 1 GiB")));
  EXPECT_THAT(late.problems, Contains(HasSubstr("Test NCCL failure common.cu:954 'unhandled cuda error / '")));
  const Answer early = answer_to(head.substr(0, head.rfind("1073741824 ")) + error);
  EXPECT_THAT(early.headline, HasSubstr("broke off before its first size: Test NCCL failure"));
  EXPECT_EQ(fact(early, "ranks"), "16");
}

// The program writes a row in parts; NCCL and the launcher write between them.
TEST(Bandwidths, ARowIsReadAroundWhatInterruptsIt) {
  const std::string info = "n0:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n";
  const std::string begin = "1073741824 268435456 float sum -1", end = " 10737.4 100 187.5 0";
  for (const std::string& row :
       {begin + info + info + end + end, begin + info + end + info + info + end,
        "[0] " + begin + "[0] " + end + "[0]" + end, "[0] " + begin + "[0] " + info + "[0] " + end + "[0] " + end,
        "[1,0]<stdout>:" + begin + "[1,0]<stdout>:" + end + "[1,0]<stdout>:" + end}) {
    const auto answers = read_text(join(split_text(Table{}.text(), begin + end + end), row));
    EXPECT_EQ(fact(answers.front(), "peak_busbw"), "187.5 GB/s at 1073741824 B") << row;
    for (const auto& [label, text] : answers.back().evidence) EXPECT_THAT(text, Not(HasSubstr("-1n0"))) << row;
  }
}

// Up to 2.12 a row has only the columns of its collective, and ends in a difference.
TEST(Bandwidths, ARowOfAnOldReleaseIsReadAroundWhatInterruptsIt) {
  const std::string info = "n0:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n";
  for (Table table : {Table{.names = "type redop", .columns = "float sum"}, Table{.names = "type", .columns = "int32"},
                      Table{.names = "type root", .columns = "float 0"}}) {
    table.checks = {"5e-07", "5e-07"};
    table.last_name = "error";
    const std::string begin = "1073741824 268435456 " + table.columns, end = " 10737.4 100 187.5 5e-07";
    for (const std::string& row : {begin + info + end + end, begin + info + end + info + info + end}) {
      const auto answers = read_text(join(split_text(table.text(), begin + end + end), row));
      EXPECT_EQ(fact(answers.front(), "peak_busbw"), "187.5 GB/s at 1073741824 B") << row;
      EXPECT_THAT(answers.back().headline, HasSubstr("n0 does not use GPUDirect RDMA")) << row;
      EXPECT_EQ(fact(answers.back(), "hosts"), "1") << row;
    }
  }
}

TEST(Bandwidths, AGpuWithoutANameIsAGpu) {
  std::string text = Table{}.text();
  for (const std::string name = " NVIDIA H100 80GB HBM3"; text.find(name) != std::string::npos;)
    text.erase(text.find(name), name.size());
  EXPECT_THAT(answer_to(text).headline, HasSubstr("on 2 nodes of 8 GPUs"));
}

TEST(Bandwidths, AHoleOfUnknownRanksIsMeasuredAgainWithRanksToFillIn) {
  std::string text = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
  for (const auto& [bytes, busbw] : {std::pair(1 << 20, 90), {1 << 21, 20}, {1 << 22, 90}})
    text += fmt::format("{0} 1 float none -1 10 {1} {1} 0 10 {1} {1} 0\n", bytes, busbw);
  EXPECT_THAT(answer_to(text).next,
              Contains("mpirun -np RANKS ./harness sweep configs/collectives.yaml -b 1M -e 4M -f 2"));
}

TEST(Bandwidths, OneOfSeveralGroupsHasNoLimit) {
  const Table whole, split{.groups = 8};
  EXPECT_EQ(fact(answer_to(whole.text()), "limit"), "400.0 GB/s");
  EXPECT_EQ(fact(answer_to(split.text()), "limit"), "");
}

TEST(Bandwidths, HostsOfOneRackAreLimitedByNvlink) {
  const auto answer_of = [](const Table& table) {
    return answer_to(table.text(), "text", {.hardware = "gb200-nvl72"});
  };
  EXPECT_EQ(fact(answer_of({}), "limit"), "900.0 GB/s");
  EXPECT_THAT(answer_of({.algbw = 24, .busbw = 45}).problems, Contains(HasSubstr("MNNVL 0")));
  // Over several racks a ring is limited by the same; an all-to-all by how the ranks are spread over them.
  const Answer slow = answer_of({.algbw = 24, .busbw = 47.67, .ranks = 144});
  EXPECT_EQ(fact(slow, "limit"), "900.0 GB/s");
  EXPECT_THAT(slow.problems, IsEmpty());
  const Table all_to_all{.columns = "float none -1", .busbw = 99.3, .checks = {"0", "N/A"}, .ranks = 144};
  EXPECT_EQ(fact(answer_of(all_to_all), "limit"), "");
}

TEST(Bandwidths, ATeslaIsKnownByItsOwnName) {
  std::string text = Table{}.text();
  for (const auto& [from, to] : {std::pair("NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-16GB"), {" on n1 ", " on n0 "}})
    text = join(split_text(text, from), to);
  EXPECT_EQ(fact(answer_to(text), "limit"), "150.0 GB/s");
  EXPECT_THAT(answer_to(text).headline, HasSubstr("on 16 V100"));
  text = join(split_text(text, "Tesla V100-SXM2-16GB"), "NVIDIA GeForce RTX 4090");
  EXPECT_THAT(answer_to(text).headline, HasSubstr("on 16 RTX 4090"));
}

TEST(Bandwidths, FarBelowTheLinksIsAProblem) {
  EXPECT_THAT(answer_to(Table{}.text()).problems, IsEmpty());
  const Answer slow = answer_to(Table{.algbw = 0.8, .busbw = 1.5}.text());
  EXPECT_THAT(slow.problems, Contains(HasSubstr("0.4 % of 400 GB/s")));
}

TEST(Bandwidths, SomeSizesOfOsuAreOfOneRank) {
  const auto peak = [](const char* test) {
    const Answer answer = answer_to(fmt::format("# OSU MPI-CUDA {} Latency Test v7.3\n# Size       Avg Latency(us)\n"
                                                "1000000 1000.0\n",
                                                test),
                                    "text", {.ranks = 4});
    EXPECT_THAT(answer.headline, HasSubstr("on 4 ranks"));
    return fact(answer, "peak_busbw").substr(0, 8);
  };
  EXPECT_EQ(peak("Allreduce"), "1.5 GB/s");
  EXPECT_EQ(peak("Allgather"), "3.0 GB/s");
  EXPECT_EQ(peak("All-to-All Personalized Exchange"), "3.0 GB/s");
  EXPECT_EQ(peak("Broadcast"), "1.0 GB/s");
}

// osu_mbw_mr and osu_multi_lat: MB/s of all pairs together, and a latency.
TEST(Bandwidths, OsuOfSeveralPairsIsReadInItsUnit) {
  const auto read_osu = [](const char* header, const char* row) {
    return answer_to(fmt::format("# OSU MPI{}\n# [ pairs: 4 ] [ window size: 64 ]\n# Size\n{}\n", header, row));
  };
  const Answer rate = read_osu(" Multiple Bandwidth / Message Rate Test v7.5.2", "1048576 90000.0 85830.7");
  EXPECT_THAT(rate.headline, HasSubstr("peak 90.0 GB/s algbw (sendrecv, several pairs"));
  EXPECT_EQ(fact(rate, "latency_s"), "");
  EXPECT_THAT(rate.problems, IsEmpty());
  EXPECT_NEAR(std::stod(fact(read_osu("-CUDA Multi Latency Test v7.3", "8 2.5"), "latency_s")), 2.5e-6, 1e-12);
}

// osu_iallreduce, also with -f. Its overall time includes computation.
TEST(Bandwidths, OsuOfANonBlockingCollectiveIsReadByItsCommunication) {
  const std::string title =
      "# OSU MPI-CUDA Non-blocking Allreduce Latency Test v7.5\n# Overall = Coll. Init + Compute\n";
  for (const char* table :
       {"# Size  Overall(us)  Compute(us)  Pure Comm.(us)  Overlap(%)\n1000000 2000.0 990.0 1000.0 0.0\n",
        "# Size  Overall(us)  Compute(us)  Coll. Init(us)  MPI_Test(us)  MPI_Wait(us)  Pure Comm.(us)"
        "  Overlap(%)\n1000000 2000.0 990.0 1.0 0.0 5.0 1000.0 0.0\n"}) {
    const Answer answer = answer_to(title + table, "text", {.ranks = 4});
    EXPECT_EQ(fact(answer, "peak_busbw").substr(0, 8), "1.5 GB/s") << table;
    EXPECT_THAT(answer.headline, HasSubstr("allreduce"));
  }
}

// Terminals and issues cut the last row: nothing in it may move to another column.
TEST(Bandwidths, ACutRowIsNoMeasurement) {
  const std::string whole = Table{.end = ""}.text();
  const std::string row = whole.substr(whole.rfind("1073741824"));
  for (std::size_t cut = row.size() - 3; cut > 0; --cut) {
    const Answer answer = answer_to(whole + "2147483648" + row.substr(10, cut - 10 * (cut > 10)) + '\n');
    EXPECT_EQ(fact(answer, "wrong"), "0") << cut;
    EXPECT_EQ(fact(answer, "peak_busbw"), "187.5 GB/s at 1073741824 B") << cut;
  }
}

TEST(Bandwidths, ATableBesideAnotherIsReadAlone) {
  std::string both;
  for (const std::string& line : split_text(Table{.end = ""}.text(), "\n"))
    both += line + (line.find("  time") != std::string::npos || line[0] == '1' ? "  |  " + line : "") + '\n';
  EXPECT_EQ(fact(answer_to(both), "peak_busbw"), "187.5 GB/s at 1073741824 B");
  EXPECT_EQ(fact(answer_to(both), "wrong"), "0");
}

TEST(Bandwidths, RowsAreReadAsPeoplePasteThem) {
  const std::string whole = Table{.busbw = 100, .ranks = 2}.text(), row = whole.substr(whole.rfind("1073741824"));
  const Answer bare = answer_to(row);  // without a header
  EXPECT_EQ(fact(bare, "peak_busbw"), "100.0 GB/s at 1073741824 B");
  EXPECT_EQ(answer_to("| 1 | 2 |\n" + row).kind, "nccl-tests");
  const Answer comma = answer_to(join(split_text(whole, "10737.4 "), "10737,4 "));
  EXPECT_EQ(fact(comma, "peak_busbw"), "100.0 GB/s at 1073741824 B");
  std::string composed;
  for (const std::string& line : split_text(whole, "\n")) composed += "worker-0  | " + line + '\n';
  EXPECT_EQ(fact(answer_to(composed), "ranks"), "2");
  composed += "worker-0  | worker-0: Test NCCL failure common.cu:954 'unhandled cuda error'\n";
  EXPECT_THAT(answer_to(composed).problems, Contains(HasSubstr("unhandled cuda error")));
}

TEST(Bandwidths, ATestThatHangsSaysSo) {
  const std::string whole = Table{.end = ""}.text();
  const Answer nothing = answer_to("$ mpirun -np 16 ./all_reduce_perf\n" + whole.substr(0, whole.rfind("1073741824")));
  EXPECT_THAT(nothing.headline, HasSubstr("broke off before its first size: it hung"));
  EXPECT_EQ(fact(nothing, "ranks"), "16");
  const auto ends = HasSubstr("the sizes end at 1 GiB of ");
  const auto until = [&](const char* most, const char* end) {
    return answer_to(join(split_text(whole, "maxBytes 8 "), fmt::format("maxBytes {} ", most)) + end).notes;
  };
  EXPECT_THAT(until("8589934592", ""), Contains(ends));
  EXPECT_THAT(until("8589934592", "# Avg bus bandwidth    : 100 \n"), Not(Contains(ends)));
  EXPECT_THAT(until("1900000000", ""), Not(Contains(ends)));
}

}  // namespace
}  // namespace harness::test
