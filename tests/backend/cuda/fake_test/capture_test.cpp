#include <atomic>

#include "device.h"

namespace harness::fake {
namespace {

class Capturing : public Device {
 protected:
  void begin(cudaStream_t stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
    ASSERT_EQ(cudaStreamBeginCapture(stream, mode), cudaSuccess);
  }
  static void fork(cudaStream_t from, cudaEvent_t event, cudaStream_t to) {
    EXPECT_EQ(cudaEventRecord(event, from), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(to, event, 0), cudaSuccess);
  }
  static cudaGraphExec_t executable(cudaGraph_t graph) {
    cudaGraphExec_t made = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&made, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return made;
  }
};

// a -> (b beside c) -> d: b and c wait for one another's start, so they must be able to run at the same time.
TEST_F(Capturing, BranchesRunAtTheSameTimeBetweenForkAndJoin) {
  TestStream main, side;
  TestEvent forked, joined;
  std::atomic<int> a = 0, b = 0, c = 0, d = 0;
  std::atomic<bool> right = true;
  begin(main);
  emulation::submit(main, [&] {
    slowly();
    ++a;
  });
  fork(main, forked, side);
  emulation::submit(side, [&] {
    right = right && a == d + 1;
    ++b;
    while (c != a) std::this_thread::yield();
  });
  emulation::submit(main, [&] {
    right = right && a == d + 1;
    ++c;
    while (b != a) std::this_thread::yield();
  });
  fork(side, joined, main);
  emulation::submit(main, [&] {
    right = right && b == a && c == a;
    ++d;
  });
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(main, &graph), cudaSuccess);
  EXPECT_EQ(a, 0);  // captured, not run
  std::size_t nodes = 0;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 4u);
  const cudaGraphExec_t launched = executable(graph);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(cudaGraphLaunch(launched, i % 2 == 0 ? main : side), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(d, 20);
  EXPECT_TRUE(right);
  EXPECT_EQ(cudaGraphExecDestroy(launched), cudaSuccess);
  EXPECT_EQ(complaints(), std::vector<std::string>{});
}

// Two branches without an order between them: both orders are seen.
TEST_F(Capturing, AMissingEdgeShows) {
  TestStream main, side;
  TestEvent forked, joined;
  std::atomic<int> value = 0, seen = 0;
  begin(main);
  emulation::submit(main, [&] { value = 0; });
  fork(main, forked, side);
  emulation::submit(side, [&] { value = 1; });
  emulation::submit(main, [&] { seen = value.load(); });
  fork(side, joined, main);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(main, &graph), cudaSuccess);
  const cudaGraphExec_t launched = executable(graph);
  int count[2] = {0, 0};
  for (int i = 0; i < 400 && (count[0] < 3 || count[1] < 3); ++i) {
    ASSERT_EQ(cudaGraphLaunch(launched, main), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(main), cudaSuccess);
    ++count[seen];
  }
  EXPECT_GE(count[0], 3);
  EXPECT_GE(count[1], 3);
  EXPECT_EQ(cudaGraphExecDestroy(launched), cudaSuccess);
}

TEST_F(Capturing, UnjoinedWorkIsRefused) {
  TestStream main, side;
  TestEvent forked, joined;
  begin(main);
  fork(main, forked, side);
  emulation::submit(side, [] {});
  fork(side, joined, main);
  emulation::submit(side, [] {});  // after the join
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(main, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph, nullptr);
  emulation::submit(side, [] {});
  EXPECT_EQ(cudaStreamSynchronize(side), cudaSuccess);  // out of the capture
}

TEST_F(Capturing, WaitingForACapturingStreamSpoilsTheCapture) {
  TestStream main;
  begin(main);
  EXPECT_EQ(cudaStreamSynchronize(main), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(main, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
}

TEST_F(Capturing, EventsBelongToTheirCapture) {
  TestStream main, other;
  TestEvent inside, outside;
  ASSERT_EQ(cudaEventRecord(outside, other), cudaSuccess);
  begin(main);
  ASSERT_EQ(cudaEventRecord(inside, main), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(main, &graph), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(inside), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaStreamWaitEvent(other, inside, 0), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  begin(main);
  EXPECT_EQ(cudaStreamWaitEvent(main, outside, 0), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(cudaStreamEndCapture(main, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_F(Capturing, AllocationIsRefusedByTheModeOfTheCapture) {
  TestStream main;
  cudaGraph_t graph = nullptr;
  void* data = nullptr;
  begin(main, cudaStreamCaptureModeThreadLocal);
  std::thread([&] { EXPECT_EQ(cudaMalloc(&data, 8), cudaSuccess); }).join();
  EXPECT_EQ(cudaStreamEndCapture(main, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaFree(data), cudaSuccess);
  begin(main, cudaStreamCaptureModeGlobal);
  std::thread([&] { EXPECT_EQ(cudaMalloc(&data, 8), cudaErrorStreamCaptureUnsupported); }).join();
  EXPECT_EQ(cudaStreamEndCapture(main, &graph), cudaErrorStreamCaptureInvalidated);
  begin(main, cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(cudaMalloc(&data, 8), cudaSuccess);
  EXPECT_EQ(cudaFree(data), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(main, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

}  // namespace
}  // namespace harness::fake
