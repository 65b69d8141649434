#include "backend/cuda/attribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace harness::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t begin_ns = 1'700'000'000'000'000'000;  // as large as CUPTI's are

ActivityRecord kernel(std::string name, std::uint64_t external, std::uint64_t start, std::uint64_t end) {
  ActivityRecord record;
  record.name = std::move(name);
  record.external_id = external;
  record.start_ns = begin_ns + start;
  record.end_ns = begin_ns + end;
  return record;
}

program::Operation on_stream(program::Action action, program::StreamId stream, int group = -1) {
  program::Operation operation{std::move(action), stream, {}, group, {}};
  return operation;
}

TEST(Attribution, AnOperationLastsFromItsFirstRecordToItsLast) {
  const std::vector<program::Operation> step = {on_stream(program::Matmul{}, 0), on_stream(program::Gelu{}, 0),
                                                on_stream(program::AllReduce{}, 1)};
  // The matmul is two kernels and a memset; the Gelu left nothing; two records are nobody's.
  const std::vector<ActivityRecord> records = {kernel("splitk", 1, 300, 400),  kernel("memset", 1, 100, 110),
                                               kernel("gemm", 1, 120, 290),    kernel("ncclDevKernel", 3, 200, 900),
                                               kernel("stray", 0, 1000, 1500), kernel("beyond", 4, 1000, 1250)};
  const auto intervals = operation_intervals(records, step, begin_ns);
  ASSERT_EQ(intervals.size(), 2u);
  EXPECT_EQ(intervals[0].operation, 0);
  EXPECT_DOUBLE_EQ(intervals[0].start_s, 100e-9);
  EXPECT_DOUBLE_EQ(intervals[0].end_s, 400e-9);
  EXPECT_EQ(intervals[1].operation, 2);
  EXPECT_EQ(intervals[1].stream, 1);
  EXPECT_DOUBLE_EQ(intervals[1].start_s, 200e-9);
  EXPECT_DOUBLE_EQ(intervals[1].end_s, 900e-9);
}

TEST(Attribution, RecordsBeforeTheBeginHaveNegativeTimes) {
  const std::vector<program::Operation> step = {on_stream(program::Matmul{}, 0)};
  const std::vector<ActivityRecord> records = {kernel("gemm", 1, 100, 200)};
  EXPECT_DOUBLE_EQ(operation_intervals(records, step, begin_ns + 150).at(0).start_s, -50e-9);
}

TEST(Attribution, MembersOfAGroupShareItsInterval) {
  // Sends and receives of group 7 start as one and leave one record under the first's id, with a copy on another
  // stream in between; a later group of the same number on the same stream is another group.
  const std::vector<program::Operation> step = {on_stream(program::Send{}, 1, 7),    on_stream(program::Matmul{}, 0),
                                                on_stream(program::Receive{}, 1, 7), on_stream(program::AllReduce{}, 1),
                                                on_stream(program::Send{}, 1, 7),    on_stream(program::Send{}, 2, 7)};
  const std::vector<ActivityRecord> records = {kernel("ncclDevKernel_SendRecv", 1, 10, 50), kernel("gemm", 2, 0, 70),
                                               kernel("ncclDevKernel_AllReduce", 4, 60, 80),
                                               kernel("ncclDevKernel_SendRecv", 5, 90, 95)};
  const auto intervals = operation_intervals(records, step, begin_ns);
  std::vector<program::OperationId> ids;
  for (const program::Interval& interval : intervals) ids.push_back(interval.operation);
  ASSERT_EQ(ids, (std::vector<program::OperationId>{0, 1, 2, 3, 4}));
  EXPECT_DOUBLE_EQ(intervals[2].start_s, 10e-9);
  EXPECT_DOUBLE_EQ(intervals[2].end_s, 50e-9);
  EXPECT_EQ(intervals[2].stream, 1);
  EXPECT_DOUBLE_EQ(intervals[4].start_s, 90e-9);
}

// A step of three kernels and a copy, run eagerly and replayed: CUPTI gives records by completion, in any order.
struct Replayed {
  std::vector<ActivityRecord> eager, replay;
  Replayed() {
    const char* names[] = {"embedding", "gemm", "memcpy", "gemm"};
    for (std::uint32_t i = 0; i < 4; ++i) {
      ActivityRecord record = kernel(names[i], i + 1, 100 * i, 100 * i + 50);
      record.kind = i == 2 ? ActivityKind::memcpy : ActivityKind::kernel;
      record.correlation_id = 40 + 3 * i;
      if (i == 2) record.start_ns = begin_ns + 10;  // the copy has a stream of its own and runs first
      eager.push_back(record);
      record.start_ns = begin_ns + 100 * i;
      record.external_id = 0;
      record.correlation_id = 99;
      record.graph_node_id = (1ull << 32) + 2 * i;
      record.start_ns += 5000 - 10 * i;
      replay.push_back(record);
    }
    std::ranges::sort(eager, {}, &ActivityRecord::start_ns);
    std::ranges::rotate(replay, replay.begin() + 1);
  }
};

TEST(Attribution, AReplayTakesItsLabelsFromTheEagerStep) {
  const Replayed both;
  std::string why;
  const auto labelled = label_replay(both.replay, both.eager, why);
  ASSERT_TRUE(labelled.has_value()) << why;
  ASSERT_EQ(labelled->size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ((*labelled)[i].external_id, i + 1);
    EXPECT_EQ((*labelled)[i].graph_node_id, (1ull << 32) + 2 * i);
    EXPECT_EQ((*labelled)[i].start_ns, begin_ns + 5000 + 90 * i);  // times are the replay's
  }
}

TEST(Attribution, AReplayOfOtherKernelsIsRefused) {
  const auto refusal = [](const Replayed& both) {
    std::string why;
    EXPECT_FALSE(label_replay(both.replay, both.eager, why).has_value());
    return why;
  };
  Replayed other_kernel;
  for (ActivityRecord& record : other_kernel.replay) {
    if (record.name == "embedding") record.name = "gemm2";
  }
  EXPECT_THAT(refusal(other_kernel), HasSubstr("'gemm2' in the graph and 'embedding' in the eager step"));

  Replayed one_less;
  std::erase_if(one_less.replay, [](const ActivityRecord& r) { return r.graph_node_id == (1ull << 32) + 6; });
  EXPECT_THAT(refusal(one_less), HasSubstr("3 kernels and copies, the eager step 4"));

  Replayed one_more;
  one_more.eager.pop_back();  // the first: everything is shifted
  EXPECT_FALSE(refusal(one_more).empty());

  Replayed twice;
  for (const ActivityRecord& record : Replayed().replay) twice.replay.push_back(record);
  EXPECT_THAT(refusal(twice), HasSubstr("ran twice"));

  Replayed not_a_graph;
  not_a_graph.replay[1].graph_node_id = 0;
  EXPECT_THAT(refusal(not_a_graph), HasSubstr("not launched by the graph"));

  Replayed other_kind;
  for (ActivityRecord& record : other_kind.replay) {
    if (record.name == "memcpy") record.kind = ActivityKind::kernel;
  }
  EXPECT_FALSE(refusal(other_kind).empty());
}

// Two streams, each of four kernels of one name, whose graph gives ids in the order of the launches.
struct Branched {
  std::vector<ActivityRecord> eager, replay;
  Branched() {
    for (std::uint32_t i = 0; i < 8; ++i) {
      ActivityRecord record = kernel("gemm", i + 1, 100 * i, 100 * i + 50);
      record.stream_id = 7 + i % 2;
      record.correlation_id = 40 + 3 * i;
      eager.push_back(record);
      record.external_id = 0;
      record.stream_id = 20;  // a graph runs its nodes on streams of its own
      record.graph_node_id = 100 + i;
      // The branches run beside each other, the second one far ahead of the first.
      record.start_ns = begin_ns + 5000 + (i % 2 == 0 ? 1000 : 0) + 100 * (i / 2);
      replay.push_back(record);
    }
  }
  void swap_ids(std::size_t a, std::size_t b) { std::swap(replay[a].graph_node_id, replay[b].graph_node_id); }
};

TEST(LabelReplay, BranchesMayOvertakeEachOtherButAStreamKeepsItsOrder) {
  std::string why;
  EXPECT_TRUE(label_replay(Branched().replay, Branched().eager, why).has_value()) << why;
  for (std::size_t a = 0; a < 8; ++a) {
    for (std::size_t b = a + 2; b < 8; b += 2) {  // of one stream
      Branched shuffled;
      shuffled.swap_ids(a, b);
      EXPECT_FALSE(label_replay(shuffled.replay, shuffled.eager, why).has_value()) << a << " and " << b;
      EXPECT_THAT(why, HasSubstr("in another order in the graph"));
    }
  }
}

// Between kernels, a graph may clear memory by one of its own.
TEST(LabelReplay, AMemsetMayBeAKernelInTheGraph) {
  Replayed both;
  both.eager[0].kind = ActivityKind::memset;
  std::string why;
  EXPECT_TRUE(label_replay(both.replay, both.eager, why).has_value()) << why;
  std::ranges::min_element(both.replay, {}, &ActivityRecord::graph_node_id)->kind = ActivityKind::memcpy;
  EXPECT_FALSE(label_replay(both.replay, both.eager, why).has_value());
}

}  // namespace
}  // namespace harness::cuda
