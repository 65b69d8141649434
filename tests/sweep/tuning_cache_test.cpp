#include "sweep/tuning_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace harness {
namespace {

class Cache : public ::testing::Test {
 protected:
  Cache() {
    std::string name = (std::filesystem::temp_directory_path() / "harness_cache_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  ~Cache() override {
    ::unsetenv("XDG_CACHE_HOME");
    std::filesystem::remove_all(folder_);
  }
  std::string folder_;
  const Tuning some_{{"matmul 1x2x3x4 a:bf16/4", "fused 0a1b 1e-04"}, {"matmul 1x2x3x4 bias", "separate 00 2e-04"}};
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
  std::string text;
  {
    std::ifstream in(cache.path());
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (const std::string& bad : {std::string("something else\n"), text + "half a line", text.substr(4)}) {
    std::ofstream(cache.path()) << bad;
    EXPECT_TRUE(cache.read().empty()) << bad;
  }
}

TEST_F(Cache, APlaceThatCannotBeWrittenIsAWarningAndNoError) {
  std::ofstream(folder_ + "/harness") << "a file where a folder should be";
  EXPECT_NE(TuningCache("gpu", "1").write(some_).find("tunes again"), std::string::npos);
}

}  // namespace
}  // namespace harness
