#include "machine/nvml.h"

#include <gtest/gtest.h>

#include "machine/fake_nvml/fake_nvml.h"

namespace harness::machine {
namespace {

TEST(Nvml, ListsTheGpusOfTheDriver) {
  fake_nvml()->answers = true;
  ASSERT_EQ(Nvml::get().unavailable(), "");
  const std::vector<Gpu> gpus = Nvml::get().gpus();
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].name, "NVIDIA Fake");
  EXPECT_EQ(gpus[0].memory_bytes, 80.0 * (1 << 30));
  fake_nvml()->answers = false;
  EXPECT_EQ(Nvml::get().gpus().at(0).memory_bytes, 0);
}

}  // namespace
}  // namespace harness::machine
