#include "backend/cpu/links.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gloo/transport/tcp/device.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>

#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

namespace harness::cpu {
namespace {

std::set<int> threads() {
  std::set<int> ids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    ids.insert(std::stoi(entry.path().filename().string()));
  }
  return ids;
}

// Otherwise each message between ranks that share few cores may cost a scheduler tick; links.cpp explains it.
TEST(Links, TheEventThreadDoesNotPreemptTheSender) {
  if (sched_getscheduler(0) != SCHED_OTHER) GTEST_SKIP() << "these tests do not run under SCHED_OTHER";
  const std::set<int> before = threads();
  const auto device = open_device(true);
  int started = 0;
  for (const int id : threads()) {
    if (before.contains(id)) continue;
    ++started;
    EXPECT_EQ(sched_getscheduler(id), SCHED_BATCH) << id;
  }
  EXPECT_GT(started, 0);
  EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
}

std::string printed(const sockaddr_in& address) {
  return fmt::format("{}:{}", ::inet_ntoa(address.sin_addr), ntohs(address.sin_port));
}
sockaddr_in& socket_of(std::string& address) {  // the socket address follows the secret
  return *reinterpret_cast<sockaddr_in*>(address.data() + sizeof(LinkSecret));
}

std::shared_ptr<gloo::transport::Device> device_at(const char* address) {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = address;
  return gloo::transport::tcp::CreateDevice(attributes);
}

/// Two ranks on loopback, before they connect. In Gloo the lower address listens: the first rank.
struct Couple {
  LinkedContext first{0, 2, {1}, device_at("127.0.0.2"), 20}, second{1, 2, {0}, device_at("127.0.0.3"), 20};
  std::string of_first = first.address(1), of_second = second.address(0);

  /// Connects both with the address that each was given. Returns each rank's error message; "" if none.
  std::array<std::string, 2> connect() {
    std::array<std::string, 2> said;
    const auto try_to = [](LinkedContext& context, int partner, const std::string& address, std::string& words) {
      try {
        context.connect(partner, address);
      } catch (const std::exception& e) {
        words = e.what();
      }
    };
    std::thread other([&] { try_to(second, 0, of_first, said[1]); });
    try_to(first, 1, of_second, said[0]);
    other.join();
    return said;
  }
};

TEST(Links, RanksOfOneNodeListenOnLoopbackAlone) {
  LinkedContext context(0, 2, {1}, open_device(true), 10);
  std::string address = context.address(1);
  EXPECT_TRUE(printed(socket_of(address)).starts_with("127.0.0.1:")) << printed(socket_of(address));
}

TEST(Links, PartnersShowEachOtherTheirSecrets) {
  Couple couple;
  EXPECT_EQ(couple.connect(), (std::array<std::string, 2>{}));
}

TEST(Links, WhoDoesNotKnowTheSecretIsFound) {
  for (const std::size_t bit : {0, 63, 127}) {
    Couple couple;
    couple.of_second[bit / 8] = static_cast<char>(couple.of_second[bit / 8] ^ (1 << bit % 8));
    const auto said = couple.connect();
    EXPECT_THAT(said, ::testing::Contains(::testing::HasSubstr("does not know the secret"))) << bit;
  }
}

}  // namespace
}  // namespace harness::cpu
