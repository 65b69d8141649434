#include "backend/cpu/links.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <set>
#include <string>

namespace harness::cpu {
namespace {

std::set<int> threads() {
  std::set<int> ids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    ids.insert(std::stoi(entry.path().filename().string()));
  }
  return ids;
}

// Otherwise each message between ranks of few cores may cost a tick of the scheduler: links.cpp says why.
TEST(Links, TheEventThreadDoesNotPreemptTheSender) {
  if (sched_getscheduler(0) != SCHED_OTHER) GTEST_SKIP() << "these tests do not run under SCHED_OTHER";
  const std::set<int> before = threads();
  const auto device = open_device();
  int started = 0;
  for (const int id : threads()) {
    if (before.contains(id)) continue;
    ++started;
    EXPECT_EQ(sched_getscheduler(id), SCHED_BATCH) << id;
  }
  EXPECT_GT(started, 0);
  EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
}

}  // namespace
}  // namespace harness::cpu
