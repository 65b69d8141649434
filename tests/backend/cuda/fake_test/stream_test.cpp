#include <atomic>
#include <cmath>

#include "device.h"

namespace harness::fake {
namespace {

// The purpose of the delays: without the wait both orders are seen soon, although the first stream has had its work,
// which takes no time, for a while when the second gets its own.
TEST_F(Device, AMissingWaitShows) {
  TestStream first, second;
  int early = 0;
  int late = 0;
  for (int i = 0; i < 400 && (early < 3 || late < 3); ++i) {
    std::atomic<int> value = 0;
    std::atomic<int> seen = -1;
    emulation::submit(first, [&] { value = 1; });
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    emulation::submit(second, [&] { seen = value.load(); });
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ++(seen == 1 ? late : early);
  }
  EXPECT_GE(early, 3);
  EXPECT_GE(late, 3);
}

// "A wait is for the most recent record at the time of the call", not for one that comes later.
TEST_F(Device, AWaitMeansTheRecordBeforeIt) {
  TestStream first, second;
  TestEvent event;
  std::atomic<bool> go = false;
  ASSERT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);  // never recorded: no wait
  emulation::submit(first, [&] {
    while (!go) slowly();
  });
  ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(second), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  go = true;
  EXPECT_EQ(cudaStreamSynchronize(first), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
}

TEST_F(Device, NewMemoryIsNotANumberAndBoundsAreKept) {
  Buffer<float> buffer(100);
  for (const float value : buffer.read()) EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(cudaMemsetAsync(buffer.data, 0, 401, nullptr), cudaErrorInvalidValue);
  EXPECT_TRUE(complained("reach out"));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data) % 256, 0u);
  std::vector<float> host(100);
  EXPECT_EQ(cudaMemcpy(buffer.data, host.data(), 400, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
}

TEST_F(Device, WritesBehindABlockAreFound) {
  float* data = nullptr;
  ASSERT_EQ(cudaMalloc(&data, 400), cudaSuccess);
  data[100] = 0;
  EXPECT_EQ(cudaFree(data), cudaSuccess);
  EXPECT_TRUE(complained("wrote behind the 400 bytes"));
  EXPECT_EQ(cudaFree(data), cudaErrorInvalidValue);
  EXPECT_TRUE(complained("not a live allocation"));
}

TEST_F(Device, MemoryEndsAndLeaksAreListed) {
  Settings settings;
  settings.device_bytes = 1000;
  reset(settings);
  void* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, 1001), cudaErrorMemoryAllocation);
  EXPECT_EQ(data, nullptr);
  ASSERT_EQ(cudaMalloc(&data, 600), cudaSuccess);
  std::size_t free_bytes = 0, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
  EXPECT_EQ(free_bytes, 400u);
  EXPECT_EQ(leaks(), std::vector<std::string>{"600 bytes of device memory"});
  EXPECT_EQ(cudaFree(data), cudaSuccess);
}

TEST_F(Device, DestroyedHandlesAreRefused) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDefault), cudaSuccess);
  std::atomic<bool> done = false;
  emulation::submit(stream, [&] {
    slowly();
    done = true;
  });
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_TRUE(done);  // what the stream was given is done all the same
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
  emulation::submit(stream, [] {});
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
}

TEST_F(Device, AKernelThatThrowsBreaksTheDevice) {
  TestStream stream;
  emulation::submit(stream, [] { throw std::runtime_error("a wrong shape"); });
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);  // for good
  EXPECT_TRUE(complained("a wrong shape"));
}

}  // namespace
}  // namespace harness::fake
