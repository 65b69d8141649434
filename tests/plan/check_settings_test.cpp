#include "plan/check_settings.h"

#include <gtest/gtest.h>

namespace harness {
namespace {

Settings with(const std::map<std::string, std::string>& nccl) {
  Settings s;
  for (const auto& [name, value] : nccl) find_variable(name)->parse(s, value);
  return s;
}

Hardware of_capability(int compute_capability) {
  Hardware h;
  h.name = "Card";
  h.compute_capability = compute_capability;
  return h;
}

TEST(CheckSettings, NvlsNeedsHopper) {
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"nccl_algo", "AllReduce:NVLSTree"}, {"nccl_nvls", "1"}}) {
    const Settings s = with({{name, value}});
    EXPECT_NE(check_settings(s, of_capability(80)).find("Card (compute capability 8.0)"), std::string::npos) << name;
    EXPECT_EQ(check_settings(s, of_capability(90)), "") << name;
    EXPECT_EQ(check_settings(s, of_capability(0)), "") << name << ": the file does not say";
    EXPECT_EQ(check_settings(s, std::nullopt), "") << name;
  }
  EXPECT_NE(check_settings(with({{"nccl_algo", "Ring;AllReduce:Tree,NVLS"}}), of_capability(89)), "");
  EXPECT_EQ(check_settings(with({{"nccl_algo", "^NVLS,NVLSTree"}}), of_capability(80)), "");
  EXPECT_EQ(check_settings(with({{"nccl_algo", "Ring;AllReduce:^NVLS"}, {"nccl_nvls", "2"}}), of_capability(80)), "");
}

TEST(CheckSettings, PrecisionsNeedTheirTensorCores) {
  Settings s;
  EXPECT_EQ(check_settings(s, of_capability(70)), "");
  s.precision = Precision::bf16;
  EXPECT_NE(check_settings(s, of_capability(70)).find("precision bf16"), std::string::npos);
  EXPECT_EQ(check_settings(s, of_capability(80)), "");
  s.precision = Precision::tf32;
  EXPECT_NE(check_settings(s, of_capability(75)).find("precision tf32"), std::string::npos);
  EXPECT_EQ(check_settings(s, of_capability(86)), "");  // a peak that is not known is no error
}

TEST(CheckSettings, PairsThatNcclWouldChangeWithoutAWord) {
  EXPECT_NE(check_settings(with({{"nccl_min_ctas", "8"}, {"nccl_max_ctas", "4"}}), std::nullopt), "");
  EXPECT_EQ(check_settings(with({{"nccl_min_ctas", "4"}, {"nccl_max_ctas", "4"}}), std::nullopt), "");
  EXPECT_EQ(check_settings(with({{"nccl_min_ctas", "8"}}), std::nullopt), "");
  const std::string sockets =
      check_settings(with({{"nccl_socket_nthreads", "16"}, {"nccl_nsocks_perthread", "5"}}), std::nullopt);
  EXPECT_NE(sockets.find("= 80 sockets"), std::string::npos) << sockets;
  EXPECT_NE(sockets.find("to 4"), std::string::npos) << sockets;
  EXPECT_EQ(check_settings(with({{"nccl_socket_nthreads", "16"}, {"nccl_nsocks_perthread", "4"}}), std::nullopt), "");
  EXPECT_NE(check_settings(with({{"nccl_algo", "AllReduce:NVLS"}, {"nccl_nvls", "0"}}), std::nullopt), "");
  EXPECT_EQ(check_settings(with({{"nccl_algo", "AllReduce:Ring,NVLS"}, {"nccl_nvls", "0"}}), std::nullopt), "");
}

}  // namespace
}  // namespace harness
