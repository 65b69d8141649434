// Tests with several ranks: threads, each with a device.
#pragma once

#include <nccl.h>

#include <functional>

#include "device.h"
#include "support/ranks.h"

namespace harness::fake {

inline ncclResult_t state_of(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  return state;
}

class Ranks : public Device {
 protected:
  void SetUp() override {
    Settings settings;
    settings.device_count = 4;
    settings.hang_after_s = 5;
    reset(settings);
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  }

  // Each rank is a thread with a device of its own.
  static void on_ranks(int count, const std::function<void(int)>& work) {
    test::rethrow_first(test::on_ranks(count, [&work](int rank) {
      EXPECT_EQ(cudaSetDevice(rank), cudaSuccess);
      work(rank);
    }));
  }

  // A communicator of `count` ranks, in use by `work`, then given up.
  void with_communicator(int count, const std::function<void(int, ncclComm_t)>& work) {
    on_ranks(count, [&](int rank) {
      ncclComm_t comm = nullptr;
      ASSERT_EQ(ncclCommInitRankConfig(&comm, count, id, rank, nullptr), ncclSuccess);
      work(rank, comm);
      EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    });
  }

  ncclUniqueId id;
};

}  // namespace harness::fake
