#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "machine/cpus.h"
#include "support/temporary_folder.h"

namespace harness::machine {
namespace {

// Sixteen CPUs, two for each core, on two NUMA nodes with two GPUs each.
class TwoNodes : public ::testing::Test {
 protected:
  TwoNodes() {
    for (int cpu = 0; cpu < 16; ++cpu) {
      const std::string folder = fmt::format("sys/devices/system/cpu/cpu{}/", cpu);
      root.write(folder + "topology/thread_siblings_list", fmt::format("{},{}\n", cpu % 8, cpu % 8 + 8));
      std::filesystem::create_directories(root / (folder + fmt::format("node{}", cpu % 8 / 4)));
    }
    for (int gpu = 0; gpu < 4; ++gpu) {
      root.write(fmt::format("proc/driver/nvidia/gpus/0000:{}b:00.0/information", gpu), "");
      const std::string folder = fmt::format("sys/bus/pci/devices/0000:{}b:00.0/", gpu);
      root.write(folder + "local_cpulist", gpu < 2 ? "0-3,8-11\n" : "4-7,12-15\n");
      root.write(folder + "numa_node", gpu < 2 ? "0\n" : "1\n");
    }
  }
  std::string part(const std::string& gpu, const std::string& cpus = "0-15") const {
    return list_of(part_of_gpu(gpu, cpus_in(cpus), root.path()));
  }
  test::TemporaryFolder root;
};

TEST_F(TwoNodes, ACpuIsOfOne) {
  EXPECT_EQ(numa_node_of(3, root.path()), 0);
  EXPECT_EQ(numa_node_of(12, root.path()), 1);
  EXPECT_EQ(numa_node_of(16, root.path()), -1);
}

TEST_F(TwoNodes, ADeviceIsNearOne) {
  const Surroundings near = surroundings_of("0000:2B:00.0", root.path());
  EXPECT_EQ(list_of(near.cpus), "4-7,12-15");
  EXPECT_EQ(near.numa_node, 1);
  EXPECT_TRUE(surroundings_of("0000:1c:00.0", root.path()).cpus.none());
  root.write("sys/bus/pci/devices/0000:2b:00.0/numa_node", "-1\n");
  EXPECT_EQ(surroundings_of("0000:2b:00.0", root.path()).numa_node, -1);
}

TEST_F(TwoNodes, GpusHaveCoresOfTheirOwn) {
  EXPECT_EQ(part("0000:0B:00.0"), "0-1,8-9");
  EXPECT_EQ(part("0000:1b:00.0"), "2-3,10-11");
  EXPECT_EQ(part("0000:2b:00.0"), "4-5,12-13");
  EXPECT_EQ(part("0000:3b:00.0"), "6-7,14-15");
  EXPECT_EQ(part("0000:1b:00.0", "0-2,8-10"), "1,9");  // of three cores that the job has, one each
  EXPECT_EQ(part("0000:3b:00.0", "0-3"), "");
  EXPECT_EQ(part("0000:4b:00.0"), "");
}

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
