#include <gmock/gmock.h>

#include <cmath>

#include "ranks.h"

namespace harness::fake {
namespace {

using ::testing::HasSubstr;

// All send first and nobody receives: without a group that hangs, and is reported instead of hanging the test.
TEST_F(Ranks, SendsWithoutAGroupHang) {
  Settings settings;
  settings.device_count = 2;
  settings.hang_after_s = 0.3;
  reset(settings);
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  on_ranks(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommInitRankConfig(&comm, 2, id, rank, nullptr), ncclSuccess);
    TestStream stream;
    Buffer<int> own(std::vector<int>{rank}), theirs(1);
    EXPECT_EQ(ncclSend(own.data, 1, ncclInt32, 1 - rank, comm, stream), ncclSuccess);
    EXPECT_EQ(ncclRecv(theirs.data, 1, ncclInt32, 1 - rank, comm, stream), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(state_of(comm), ncclRemoteError);
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  });
  EXPECT_TRUE(complained("a hang"));
}

TEST_F(Ranks, DifferentCallsAreFoundNotHungOn) {
  on_ranks(3, [&](int rank) {
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommInitRankConfig(&comm, 3, id, rank, nullptr), ncclSuccess);
    TestStream stream;
    Buffer<float> data(std::vector<float>(8, 1));
    const ncclResult_t called =
        ncclAllReduce(data.data, data.data, rank == 1 ? 7 : 8, ncclFloat32, ncclSum, comm, stream);
    EXPECT_TRUE(called == ncclSuccess || called == ncclInvalidUsage);  // the latter if the other two met before
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(state_of(comm), ncclInvalidUsage);
    EXPECT_THAT(std::string(ncclGetLastError(comm)), HasSubstr("AllReduce of 7 x type 7"));
    EXPECT_EQ(ncclAllReduce(data.data, data.data, 8, ncclFloat32, ncclSum, comm, stream), ncclInvalidUsage);
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  });
  EXPECT_TRUE(complained("AllReduce of 7 x type 7"));
  EXPECT_TRUE(complained("AllReduce of 8 x type 7"));
}

TEST_F(Ranks, AnAbortFromAnotherThreadUnblocks) {
  on_ranks(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommInitRankConfig(&comm, 2, id, rank, nullptr), ncclSuccess);
    TestStream stream;
    Buffer<float> data(std::vector<float>(8, 1));
    if (rank == 0) {
      EXPECT_EQ(ncclAllReduce(data.data, data.data, 8, ncclFloat32, ncclSum, comm, stream), ncclSuccess);
      slowly();
    }
    std::thread([&] { EXPECT_EQ(ncclCommAbort(comm), ncclSuccess); }).join();
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(ncclAllReduce(data.data, data.data, 8, ncclFloat32, ncclSum, comm, stream), ncclInvalidArgument);
  });
  EXPECT_TRUE(complained("not a live communicator"));
}

TEST_F(Ranks, WrongArgumentsAreRefused) {
  with_communicator(2, [](int rank, ncclComm_t comm) {
    TestStream stream;
    Buffer<float> data(8);
    float host[8];
    EXPECT_EQ(ncclAllReduce(host, data.data, 8, ncclFloat32, ncclSum, comm, stream), ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(data.data, data.data, 9, ncclFloat32, ncclSum, comm, stream), ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(data.data, data.data + 1, 4, ncclFloat32, ncclSum, comm, stream), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclSend(data.data, 8, ncclFloat32, rank, comm, stream), ncclSuccess);
    EXPECT_EQ(ncclRecv(data.data, 8, ncclFloat32, 7, comm, stream), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);  // and nothing of the group is started
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(state_of(comm), ncclSuccess);
  });
}

TEST_F(Ranks, TwoRanksOnOneDeviceAreRefused) {
  on_ranks(2, [&](int rank) {
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, rank, nullptr), ncclInvalidUsage);
  });
  EXPECT_TRUE(complained("Duplicate GPU detected"));
}

}  // namespace
}  // namespace harness::fake
