#include "backend/cpu/links.h"

#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/text.h"
#include "machine/tree.h"

namespace harness::cpu {
namespace {

LinkSecret draw_secret() {
  LinkSecret secret{};
  if (::getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    fail("the system gives no random numbers: {}", std::strerror(errno));
  return secret;
}

std::string text_of(const sockaddr* address) {
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address, sizeof(sockaddr_in), text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text.data();
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.");
}

// The IPv4 address of this host's name, "" if it has none.
std::string address_of_host() {
  const std::string name = machine::host_name();
  if (name.empty()) return "";
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0 || found == nullptr) return "";
  std::string text = text_of(found->ai_addr);
  freeaddrinfo(found);
  return text;
}

std::vector<std::string> addresses_of_interfaces() {
  std::vector<std::string> out;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return out;
  for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next) {
    const bool running = (i->ifa_flags & IFF_UP) != 0 && (i->ifa_flags & IFF_RUNNING) != 0;
    if (i->ifa_addr != nullptr && i->ifa_addr->sa_family == AF_INET && running) out.push_back(text_of(i->ifa_addr));
  }
  freeifaddrs(all);
  return out;
}

std::string own_address() {
  const std::vector<std::string> here = addresses_of_interfaces();
  std::string named = address_of_host();
  if (!is_loopback(named) && std::find(here.begin(), here.end(), named) != here.end()) return named;
  for (const std::string& a : here) {
    if (!a.empty() && !is_loopback(a)) return a;
  }
  return "127.0.0.1";
}

// Threads that start during its lifetime do not preempt those that wake them (SCHED_BATCH). If Gloo's event thread
// finds a pair locked by a sending thread, it retries without sleeping. On the sender's core it would stop the sender
// until the next scheduler tick: 4 ms at 250 Hz, measured for every all-reduce of 8 KiB to 1 MiB between two ranks of
// one core each, against 0.11 to 0.29 ms.
class BatchScheduling {
 public:
  BatchScheduling() : policy_(sched_getscheduler(0)) {
    sched_getparam(0, &parameters_);
    if (policy_ != SCHED_OTHER) return;  // the policy was set on purpose
    const sched_param none{};
    changed_ = sched_setscheduler(0, SCHED_BATCH, &none) == 0;
  }
  ~BatchScheduling() {
    if (changed_) sched_setscheduler(0, policy_, &parameters_);
  }
  BatchScheduling(const BatchScheduling&) = delete;
  BatchScheduling& operator=(const BatchScheduling&) = delete;

 private:
  int policy_;
  sched_param parameters_{};
  bool changed_ = false;
};

constexpr std::uint64_t secret_slot = ~std::uint64_t{0};  // Gloo's own slots count up from 0

}  // namespace

std::shared_ptr<gloo::transport::Device> open_device(bool one_node) {
  const BatchScheduling while_the_event_thread_starts;
  gloo::transport::tcp::attr attributes;
  const char* interface = std::getenv("HARNESS_GLOO_IFNAME");
  if (interface != nullptr && *interface != '\0') {
    attributes.iface = interface;
  } else {
    attributes.hostname = one_node ? "127.0.0.1" : own_address();
  }
  try {
    return gloo::transport::tcp::CreateDevice(attributes);
  } catch (const std::exception& e) {
    fail("Gloo cannot listen on {}: {}; set HARNESS_GLOO_IFNAME to an interface that `ip addr` lists and peers reach",
         attributes.iface.empty() ? attributes.hostname : "interface " + attributes.iface, e.what());
  }
}

LinkedContext::LinkedContext(int own_rank, int ranks, const std::vector<int>& partners,
                             std::shared_ptr<gloo::transport::Device> device, double timeout_s)
    : gloo::Context(own_rank, ranks), partners_(partners) {
  const auto timeout = std::chrono::milliseconds(std::max<std::int64_t>(1, static_cast<std::int64_t>(timeout_s * 1e3)));
  std::sort(partners_.begin(), partners_.end());
  device_ = std::move(device);
  timeout_ = timeout;
  transportContext_ = device_->createContext(own_rank, ranks);
  transportContext_->setTimeout(timeout);
  for (const int p : partners_) transportContext_->createPair(p);
}

std::string LinkedContext::address(int partner) {
  const std::vector<char> bytes = getPair(partner)->address().bytes();
  const LinkSecret& secret = secrets_.try_emplace(partner, draw_secret()).first->second;
  return std::string(secret.begin(), secret.end()) + std::string(bytes.begin(), bytes.end());
}

void LinkedContext::connect(int partner, const std::string& address) {
  LinkSecret of_partner{};
  if (address.size() <= of_partner.size()) fail("the peer's address is cut short");
  address.copy(of_partner.data(), of_partner.size());
  const std::vector<char> peer(address.begin() + of_partner.size(), address.end());
  getPair(partner)->connect(peer);
  LinkSecret shown = secrets_.at(partner), seen{};
  const auto outgoing = createUnboundBuffer(shown.data(), shown.size());
  const auto incoming = createUnboundBuffer(seen.data(), seen.size());
  incoming->recv(partner, secret_slot);
  outgoing->send(partner, secret_slot);
  outgoing->waitSend();
  incoming->waitRecv();
  if (seen != of_partner) fail("whoever is connected does not know the secret of this job");
}

void LinkedContext::poison() noexcept {
  // Closing a pair does not wake its waiters. A receive that times out does: Gloo then closes all pairs of the context
  // and fails everything pending on them.
  try {
    char byte = 0;
    createUnboundBuffer(&byte, 1)->waitRecv(std::chrono::milliseconds(1));
  } catch (const std::exception&) {
    // the intended time-out
  }
}

}  // namespace harness::cpu
