// Flight Recorder dumps of several ranks: which rank the others wait for.
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
using testing::Not;

// A process group of a rank: its last collective, whether it is complete, its name and size.
struct Member {
  std::string group, ranks;
  int last = 9;
  bool complete = true;
  std::string name = "all_reduce", size = "512";
};

// One dump of Flight Recorder for each rank.
Answer recorded(const std::vector<std::pair<int, std::vector<Member>>>& dumps) {
  NameValues files;
  for (const auto& [rank, members] : dumps) {
    std::vector<std::string> groups, entries;
    for (const Member& m : members) {
      for (int number = 8; number <= m.last; ++number)
        entries.push_back(fmt::format(
            R"({{"pg_id": {5}, "process_group": ["{0}", "{0}"], "collective_seq_id": {1}, "profiling_name": "nccl:{2}",)"
            R"( "input_sizes": [[{3}]], "input_dtypes": ["Float"], "state": "{4}"}})",
            m.group, number, number == m.last ? m.name : "all_reduce", number == m.last ? m.size : "512",
            number == m.last && !m.complete ? "started" : "completed", groups.size()));
      groups.push_back(fmt::format(R"("{0}": {{"name": "{0}", "desc": "{0}", "ranks": "{1}"}})", m.group, m.ranks));
    }
    files.emplace_back(fmt::format("dump_{}", rank),
                       fmt::format(R"({{"rank": {}, "pg_config": {{{}}}, "entries": [{}]}})", rank, join(groups, ", "),
                                   join(entries, ", ")));
  }
  return answers_to(files).front();
}

TEST(FlightRecorder, NamesAllThatAreBehind) {
  std::vector<std::pair<int, std::vector<Member>>> dumps;
  for (int rank = 0; rank < 12; ++rank) {
    const bool late = rank == 9 || rank == 11;
    dumps.push_back({rank, {{"all", "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]", late ? 9 : 10, late}}});
  }
  const Answer answer = recorded(dumps);
  EXPECT_EQ(answer.headline, "rank 9 and rank 11 never came to all_reduce 10");
  EXPECT_EQ(answer.evidence.front().first, "rank 9");
}

// Rank 2 waits for rank 3 in their own group, which is why it has not reached the collective of ranks 0 and 1.
TEST(FlightRecorder, ARankThatWaitsElsewhereIsNoSuspect) {
  const std::string all = "[0, 1, 2, 3]";
  const Answer answer = recorded({{0, {{"all", all, 10, false}}},
                                  {1, {{"all", all, 10, false}}},
                                  {2, {{"all", all, 9}, {"pair", "[2, 3]", 21, false}}},
                                  {3, {{"all", all, 9}, {"pair", "[2, 3]", 20}}}});
  EXPECT_EQ(answer.headline, "rank 3 never came to all_reduce 21");
}

TEST(FlightRecorder, DifferentCallsAreTheProgramsFault) {
  const auto headline = [](const Member& other) {
    return recorded({{0, {{"all", "[0, 1]", 9, false}}}, {1, {other}}}).headline;
  };
  EXPECT_THAT(headline({"all", "[0, 1]", 9, false, "broadcast"}),
              AllOf(HasSubstr("collective 9 is "), HasSubstr("broadcast of 512 fp32 on rank 1")));
  EXPECT_THAT(headline({"all", "[0, 1]", 9, false, "all_reduce", "513"}), HasSubstr("513 fp32"));
  EXPECT_THAT(headline({"all", "[0, 1]", 9, false}), HasSubstr("every rank: all_reduce 9"));
  const auto all_to_all = [](const char* size) { return Member{"all", "[0, 1]", 9, false, "all_to_all", size}; };
  EXPECT_THAT(recorded({{0, {all_to_all("5")}}, {1, {all_to_all("7")}}}).headline, HasSubstr("every rank"));
}

TEST(FlightRecorder, AMissingDumpIsSuspectedFirst) {
  const std::vector<Member> waits{{"all", "[0, 1, 2]", 9, false}};
  const Answer answer = recorded({{0, waits}, {2, waits}});
  EXPECT_EQ(answer.headline, "no file of rank 1");
  EXPECT_THAT(answer.problems, Not(Contains(HasSubstr("every rank"))));
  const std::vector<Member> done{{"all", "[0, 1]", 9, true}};
  EXPECT_EQ(recorded({{0, done}, {1, done}}).headline, "every rank completed all_reduce 9 and had not come to 10");
}

// PyTorch's own dumps state no rank, and their status is text.
TEST(FlightRecorder, TheRankIsInTheNameOfTheFile) {
  const auto headline = [](const std::vector<const char*>& names) {
    NameValues files;
    for (const char* name : names)
      files.emplace_back(
          name,
          R"({"pg_config": {"0": {"desc": "all", "ranks": "[0, 1, 2]"}}, "pg_status": {"0": )"
          R"({"last_enqueued_collective": "9", "last_started_collective": "9", "last_completed_collective": "8"}},)"
          R"( "entries": [{"pg_id": 0, "process_group": ["0", "all"], "collective_seq_id": 9,)"
          R"( "profiling_name": "nccl:all_reduce", "state": "started"}]})");
    return answers_to(files).front().headline;
  };
  EXPECT_EQ(headline({"trace_rank_0", "trace_rank_2"}), "no file of rank 1");
  EXPECT_EQ(headline({"trace_rank_0.json", "trace_rank_2.json"}), "no file of rank 1");
  EXPECT_THAT(headline({"a.json", "b.json", "c.json"}), HasSubstr("every rank: all_reduce 9"));
}

// Group 1 of rank 2 is called "2", as its entries would say if later ones had not taken their place.
TEST(FlightRecorder, AGroupWithoutEntriesIsNotTakenForAnother) {
  NameValues files;
  for (int rank = 0; rank < 3; ++rank) {
    const char* entry =
        R"({"pg_id": 1, "process_group": ["1", "pair"], "collective_seq_id": 812, "profiling_name": "nccl:all_reduce",)"
        R"( "state": "started"})";
    files.emplace_back(
        fmt::format("trace_{}", rank),
        fmt::format(
            R"({{"pg_config": {{"1": {{"desc": "pair", "ranks": "[0, 1]"}}, "2": {{"desc": "alone", "ranks": "[2]"}}}},)"
            R"( "pg_status": {{"1": {{"last_enqueued_collective": {0}, "last_started_collective": {0},)"
            R"( "last_completed_collective": {1}}}}}, "entries": [{2}]}})",
            rank < 2 ? 812 : 40, rank < 2 ? 811 : 40, rank < 2 ? entry : ""));
  }
  EXPECT_THAT(answers_to(files).front().headline, HasSubstr("every rank: all_reduce 812"));
}

// _dump_nccl_trace_json() writes sorted keys, so `pg_config` comes after a megabyte of entries.
TEST(FlightRecorder, ALongDumpIsKnownByItsEntries) {
  std::vector<std::string> entries;
  for (int number = 1; number <= 800; ++number)
    entries.push_back(fmt::format(
        R"({{"collective_seq_id": {}, "input_dtypes": ["Float"], "input_sizes": [[512]], "is_p2p": false, "pg_id": 0,)"
        R"( "process_group": ["0", "all"], "profiling_name": "nccl:all_reduce", "state": "{}"{:2000}}})",
        number, number == 800 ? "started" : "completed", ""));  // longer than what is looked at first
  const std::string text = fmt::format(
      R"({{"comm_lib_version": "2.27.3", "entries": [{}], "pg_config": {{"0": {{"desc": "all", "ranks": "[0, 1]"}}}}}})",
      join(entries, ", "));
  EXPECT_THAT(answer_to(text, "trace_1").headline, HasSubstr("rank 1: all_reduce 800 of 512 fp32 started"));
}

// Returns a call of three ranks, of which `last` came last.
std::string inspected(const char* communicator, int call, int last) {
  std::string text;
  for (int rank = 0; rank < 3; ++rank)
    text += fmt::format(
        R"({{"header": {{"id": "{}", "rank": {}, "n_ranks": 3}}, "coll_perf": {{"coll": "AllReduce", "coll_sn": {},)"
        R"( "coll_msg_size_bytes": 1048576, "coll_exec_time_us": {}, "coll_busbw_gbs": 9.0}}}})"
        "\n",
        communicator, rank, call, rank == last ? 100 : 400);
  return text;
}

TEST(Inspector, ARankThatComesLastIsInTheHeadline) {
  std::string late, by_turns, other;
  for (int call = 0; call < 6; ++call) {
    late += inspected("0x1", call, 2);
    by_turns += inspected("0x2", call, call % 3);
    other += inspected("0x3", call, call % 2);
  }
  EXPECT_THAT(answer_to(late).headline, HasSubstr("; rank 2 came last to 6 of 6 calls"));
  EXPECT_THAT(answer_to(by_turns).headline, Not(HasSubstr("came last")));
  EXPECT_THAT(answer_to(other + late + by_turns).headline,
              HasSubstr("; rank 2 of communicator 0x1 came last to 6 of 6 calls"));
}

// Each communicator counts its calls from 0.
TEST(Inspector, ASlowCallIsNamedByItsCommunicatorIfThereAreSeveral) {
  const auto call = [](const char* communicator, int number, int microseconds) {
    return fmt::format(
        R"({{"header": {{"id": "{}", "rank": 0, "n_ranks": 3}}, "coll_perf": {{"coll": "AllReduce", "coll_sn": {},)"
        R"( "coll_msg_size_bytes": 1048576, "coll_exec_time_us": {}, "coll_busbw_gbs": 9.0}}}})"
        "\n",
        communicator, number, microseconds);
  };
  std::string text;
  for (int number = 0; number < 6; ++number) text += call("0x1", number, 400) + call("0x2", number, 400);
  EXPECT_THAT(answer_to(text + call("0x2", 6, 900)).problems,
              Contains(HasSubstr("sequence 6 of communicator 0x2: 900 us against 400")));
}

}  // namespace
}  // namespace harness::test
