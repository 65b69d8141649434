#include "sweep/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/files.h"
#include "support/temporary_folder.h"

namespace harness::sweep {
namespace {

using ::testing::HasSubstr;

class Cache : public ::testing::Test {
 protected:
  Cache() { ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }
  ~Cache() override { ::unsetenv("XDG_CACHE_HOME"); }
  const test::TemporaryFolder folder_;
  const backend::Tuning some_{{"matmul 1x2x3x4 a:bf16/4", "fused 0a1b 1e-04"},
                              {"matmul 1x2x3x4 bias", "separate 00 2e-04"}};
};

TEST_F(Cache, ComesBackAsItWas) {
  const TuningCache cache("NVIDIA H200", "13.1.0");
  EXPECT_TRUE(cache.read().empty());
  EXPECT_EQ(cache.write(some_), "");
  EXPECT_EQ(TuningCache("NVIDIA H200", "13.1.0").read(), some_);
}

TEST_F(Cache, AnotherGpuOrLibraryHasAnotherFile) {
  EXPECT_EQ(TuningCache("NVIDIA H200", "13.1.0").write(some_), "");
  EXPECT_TRUE(TuningCache("NVIDIA H100", "13.1.0").read().empty());
  EXPECT_TRUE(TuningCache("NVIDIA H200", "13.0.0").read().empty());
}

TEST_F(Cache, WhatIsNoCacheIsNotRead) {
  const TuningCache cache("gpu", "1");
  ASSERT_EQ(cache.write(some_), "");
  const std::string path = std::filesystem::directory_iterator(folder_ / "harness")->path();
  const std::string text = test::text_of(path);
  for (const std::string& bad : {std::string("something else\n"), text + "half a line", text.substr(4)}) {
    std::ofstream(path) << bad;
    EXPECT_TRUE(cache.read().empty()) << bad;
  }
}

TEST_F(Cache, APlaceThatCannotBeWrittenIsAWarningAndNoError) {
  folder_.write("harness", "a file where a folder should be");
  EXPECT_THAT(TuningCache("gpu", "1").write(some_), HasSubstr("tunes again"));
}

}  // namespace
}  // namespace harness::sweep
