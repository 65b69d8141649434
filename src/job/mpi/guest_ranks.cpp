// A guest's side.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "job/mpi/guest_link.h"
#include "job/mpi/guest_process.h"
#include "job/mpi/guests.h"
#include "job/mpi/waiter.h"

namespace harness::mpi {
namespace {

class GuestRanks final : public Ranks {
 public:
  explicit GuestRanks(int fd) : link_(fd) { welcome_ = job::decode_fields<Welcome>(answer_to(Call::welcome, {})); }

  int rank() const override { return welcome_.rank; }
  int size() const override { return welcome_.size; }
  const std::vector<int>& node_ranks() const override { return welcome_.node_ranks; }
  bool is_guest() const override { return true; }
  std::string library() const override { return welcome_.library; }
  double max_sleep_s() const override { return welcome_.max_sleep_s; }

  void broadcast(std::string& bytes, const Idle& idle) override { bytes = call(Call::broadcast, "", idle); }

  void maximum(std::span<std::int64_t> values, const Idle& idle) override {
    std::ranges::copy(elementwise(Call::maximum, std::vector(values.begin(), values.end()), idle), values.begin());
  }

  void barrier(const Idle& idle) override { call(Call::barrier, "", idle); }

  void node_union(std::span<std::uint64_t> bits, const Idle& idle) override {
    std::ranges::copy(elementwise(Call::node_union, std::vector(bits.begin(), bits.end()), idle), bits.begin());
  }

  std::vector<std::string> gather(const std::string& bytes, const Idle& idle) override {
    call(Call::gather, bytes, idle);
    return {};  // rank 0 is nobody's guest
  }

  std::vector<std::pair<int, std::string>> exchange(const std::vector<std::pair<int, std::string>>& outgoing,
                                                    const Idle& idle) override {
    return job::decode_fields<std::vector<std::pair<int, std::string>>>(
        call(Call::exchange, job::encode_fields(outgoing), idle));
  }

  void send(int to, const Note& note) override {
    Note addressed = note;
    addressed.to = to;
    link_.send(addressed);
  }

  std::optional<Note> receive() override {
    link_.pump();
    return link_.next_note();
  }

  // Those of this rank reach its host before its next call does, and the host waits for them in the barrier.
  void flush_notes(const Idle& /*idle*/) override {}

  void finish() override {}
  void abandon(int exit_code) override { std::_Exit(exit_code); }

 private:
  std::string call(Call name, std::string_view bytes, const Idle& idle) {
    link_.send(name, bytes);
    return answer_to(name, idle);
  }

  template <class T>
  std::vector<T> elementwise(Call name, const std::vector<T>& values, const Idle& idle) {
    return job::decode_fields<std::vector<T>>(call(name, job::encode_fields(values), idle));
  }

  std::string answer_to(Call name, const Idle& idle) {
    Waiter waiter(welcome_.max_sleep_s);
    for (;;) {
      link_.pump();
      if (auto answer = link_.next()) {
        if (answer->call != name) fail("a rank's host answers another call than its own: this is a defect of harness");
        return std::move(answer->bytes);
      }
      if (link_.closed()) throw Error("");  // its host has said why, or cannot any more
      if (idle) idle();
      waiter.sleep();
    }
  }

  GuestLink link_;
  Welcome welcome_;
};

}  // namespace

std::unique_ptr<Ranks> join_as_guest() {
  const char* text = std::getenv(guest_variable);
  if (text == nullptr) return nullptr;
  int domain = 0;
  socklen_t length = sizeof domain;
  if (std::to_string(guest_descriptor) != text ||
      ::getsockopt(guest_descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 || domain != AF_UNIX) {
    fail("{}={} is set in the environment, but harness sets it itself, for processes that it starts: unset it",
         guest_variable, text);
  }
  ::unsetenv(guest_variable);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // whatever it is doing when its host dies; if it is dead already, the link tells
  return std::make_unique<GuestRanks>(guest_descriptor);
}

}  // namespace harness::mpi
