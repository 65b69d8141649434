// Shared by the tests of the stand-ins.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "fake.h"

namespace harness::fake {

inline void slowly() {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

// Each test starts with a fresh device and must leave nothing behind.
class Device : public ::testing::Test {
 protected:
  void SetUp() override { reset(); }
  void TearDown() override {
    EXPECT_EQ(leaks(), std::vector<std::string>{});
    reset();
  }

  // The complaints so far contain `part`; and they are dropped, errors of the device as well as the things made.
  static bool complained(const std::string& part) {
    for (const std::string& complaint : complaints()) {
      if (complaint.find(part) != std::string::npos) return true;
    }
    return false;
  }
};

struct TestStream {
  TestStream() { EXPECT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0), cudaSuccess); }
  ~TestStream() { cudaStreamDestroy(stream); }
  TestStream(const TestStream&) = delete;
  operator cudaStream_t() const { return stream; }
  cudaStream_t stream = nullptr;
};

struct TestEvent {
  TestEvent() { EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDefault), cudaSuccess); }
  ~TestEvent() { cudaEventDestroy(event); }
  TestEvent(const TestEvent&) = delete;
  operator cudaEvent_t() const { return event; }
  cudaEvent_t event = nullptr;
};

template <typename T>
struct Buffer {
  explicit Buffer(std::size_t elements) : count(elements) {
    EXPECT_EQ(cudaMalloc(&data, count * sizeof(T)), cudaSuccess);
  }
  explicit Buffer(const std::vector<T>& values) : Buffer(values.size()) {
    EXPECT_EQ(cudaMemcpy(data, values.data(), count * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~Buffer() { cudaFree(data); }
  Buffer(const Buffer&) = delete;
  std::vector<T> read() const {
    std::vector<T> values(count);
    EXPECT_EQ(cudaMemcpy(values.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }
  T* data = nullptr;
  std::size_t count;
};

}  // namespace harness::fake
