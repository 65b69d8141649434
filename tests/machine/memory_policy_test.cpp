#include "machine/memory_policy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "machine/numa.h"

namespace harness::machine {
namespace {

TEST(MemoryPolicy, IsNamed) {
  EXPECT_EQ(describe({}), "default");
  EXPECT_EQ(describe(preferring(0)), "preferred 0");
  EXPECT_EQ(describe(preferring(65)), "preferred 65");
  EXPECT_EQ(describe({2, {3}}), "bind 0-1");
  EXPECT_EQ(describe({99, {}}), "mode 99");
}

TEST(MemoryPolicy, ARefusalHasAdviceThatFitsIt) {
  EXPECT_EQ(with_advice(""), "");
  EXPECT_NE(with_advice("operation not permitted").find("SYS_NICE"), std::string::npos);
  EXPECT_EQ(with_advice("invalid argument").find("SYS_NICE"), std::string::npos);
  EXPECT_NE(with_advice("invalid argument").find("cpuset.mems"), std::string::npos);
  EXPECT_EQ(with_advice("function not implemented"), "function not implemented");
}

TEST(MemoryPolicy, IsKeptByTheKernel) {
  MemoryPolicy before, now;
  if (!get_memory_policy(before).empty()) GTEST_SKIP() << "the kernel refuses";
  std::size_t cpu = 0;
  while (!bound_cpus()[cpu]) ++cpu;
  const int node = std::max(0, numa_node_of(static_cast<int>(cpu)));
  EXPECT_EQ(set_memory_policy(preferring(node)), "");
  EXPECT_EQ(get_memory_policy(now), "");
  EXPECT_EQ(now, preferring(node));
  EXPECT_EQ(set_memory_policy(before), "");
  EXPECT_EQ(set_memory_policy(preferring(900)), "invalid argument");  // no machine here has as many
}

}  // namespace
}  // namespace harness::machine
