// Communication among other work: in graphs, and of several streams in a group.
#include <algorithm>

#include "ranks.h"

namespace harness::fake {
namespace {

// Two streams and two communicators in a graph, launched again and again, with a call outside of it between.
TEST_F(Ranks, CapturedCollectivesMatchByLaunch) {
  with_communicator(3, [](int rank, ncclComm_t comm) {
    ncclComm_t child = nullptr;
    ASSERT_EQ(ncclCommSplit(comm, 0, rank, &child, nullptr), ncclSuccess);
    TestStream main, side;
    TestEvent forked, joined;
    Buffer<float> first_buffer(std::vector<float>{1}), second_buffer(std::vector<float>{2});
    EXPECT_EQ(cudaStreamBeginCapture(main, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(forked, main), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(side, forked, 0), cudaSuccess);
    EXPECT_EQ(ncclAllReduce(second_buffer.data, second_buffer.data, 1, ncclFloat32, ncclSum, child, side), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(first_buffer.data, first_buffer.data, 1, ncclFloat32, ncclSum, comm, main), ncclSuccess);
    EXPECT_EQ(cudaEventRecord(joined, side), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(main, joined, 0), cudaSuccess);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t launched = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(main, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&launched, graph, 0), cudaSuccess);
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(cudaGraphLaunch(launched, main), cudaSuccess);
      EXPECT_EQ(ncclAllReduce(first_buffer.data, first_buffer.data, 1, ncclFloat32, ncclMax, comm, main), ncclSuccess);
    }
    EXPECT_EQ(cudaStreamSynchronize(main), cudaSuccess);
    EXPECT_EQ(first_buffer.read()[0], 243);
    EXPECT_EQ(second_buffer.read()[0], 486);
    EXPECT_EQ(cudaGraphExecDestroy(launched), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(ncclCommAbort(child), ncclSuccess);
  });
  EXPECT_EQ(complaints(), std::vector<std::string>{});
}

// One group, two streams: each stream's earlier work comes before all of the group, its later work after all of it.
TEST_F(Ranks, AGroupOrdersTheStreamsOfItsCalls) {
  with_communicator(3, [](int rank, ncclComm_t comm) {
    TestStream first, second;
    const auto whole = [](float value) { return static_cast<__nv_bfloat16>(value); };
    for (int round = 0; round < 20; ++round) {
      Buffer<__nv_bfloat16> first_buffer(std::vector<__nv_bfloat16>(4, whole(0))),
          second_buffer(std::vector<__nv_bfloat16>(4, whole(0)));
      Buffer<__nv_bfloat16> seen(4);
      emulation::submit(first, [&] { std::fill_n(first_buffer.data, 4, whole(static_cast<float>(rank))); });
      emulation::submit(second, [&] {
        slowly();
        std::fill_n(second_buffer.data, 4, whole(1.0f));
      });
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
      EXPECT_EQ(ncclAllReduce(first_buffer.data, first_buffer.data, 4, ncclBfloat16, ncclMax, comm, first),
                ncclSuccess);
      EXPECT_EQ(ncclAllReduce(second_buffer.data, second_buffer.data, 4, ncclBfloat16, ncclSum, comm, second),
                ncclSuccess);
      EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
      EXPECT_EQ(cudaMemcpyAsync(seen.data, second_buffer.data, 8, cudaMemcpyDeviceToDevice, first), cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(first), cudaSuccess);
      EXPECT_EQ(static_cast<float>(first_buffer.read()[3]), 2);
      EXPECT_EQ(static_cast<float>(seen.read()[3]), 3);
      EXPECT_EQ(cudaStreamSynchronize(second), cudaSuccess);
    }
  });
  EXPECT_EQ(complaints(), std::vector<std::string>{});
}

}  // namespace
}  // namespace harness::fake
