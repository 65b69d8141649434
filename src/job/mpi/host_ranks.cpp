// A host's side, and that of the ranks that have no guests where others do.
#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "job/mpi/fault.h"
#include "job/mpi/guest_process.h"
#include "job/mpi/guests.h"
#include "job/mpi/waiter.h"
#include "machine/proc.h"

namespace harness::mpi {
namespace {

constexpr double leaving_s = 10;  // for guests to end by themselves
constexpr double dying_s = 1;     // for the kernel to say how a process ended whose socket is closed

using Message = std::pair<int, std::string>;  // to or from a rank, and its bytes
using Messages = std::vector<Message>;
// What goes from node to node: to, from, and the bytes.
using Parcel = std::pair<std::pair<int, int>, std::string>;

// Launched ranks have a number among those that the launcher started, and one among all, which the callers see.
class HostRanks final : public Ranks {
 public:
  /// `firsts`: for each launched rank its number among all, and behind the last the number of all.
  HostRanks(std::unique_ptr<Ranks> launched, std::vector<int> firsts)
      : launched_(std::move(launched)), firsts_(std::move(firsts)) {
    for (const int peer : launched_->node_ranks()) {
      for (int rank = first(peer); rank < first(peer + 1); ++rank) node_ranks_.push_back(rank);
    }
    for (int guest = rank() + 1; guest < first(launched_->rank() + 1); ++guest) {
      guests_.emplace_back().link().send(
          Call::welcome, job::encode_fields(Welcome{guest, size(), node_ranks_, library(), max_sleep_s()}));
    }
  }

  int rank() const override { return first(launched_->rank()); }
  int size() const override { return firsts_.back(); }
  const std::vector<int>& node_ranks() const override { return node_ranks_; }
  std::string library() const override { return launched_->library(); }
  double max_sleep_s() const override { return launched_->max_sleep_s(); }

  void broadcast(std::string& bytes, const Idle& idle) override {
    await_all(Call::broadcast, idle);
    launched_->broadcast(bytes, polling(idle));
    answer_all(Call::broadcast, bytes);
  }

  void maximum(std::span<std::int64_t> values, const Idle& idle) override {
    merge(
        Call::maximum, values, [](std::int64_t a, std::int64_t b) { return std::max(a, b); }, idle);
    launched_->maximum(values, polling(idle));
    answer_all(Call::maximum, job::encode_fields(std::vector(values.begin(), values.end())));
  }

  void barrier(const Idle& idle) override {
    await_all(Call::barrier, idle);
    launched_->flush_notes(polling(idle));  // the guests' among them
    launched_->barrier(polling(idle));
    answer_all(Call::barrier, "");
  }

  void node_union(std::span<std::uint64_t> bits, const Idle& idle) override {
    merge(
        Call::node_union, bits, [](std::uint64_t a, std::uint64_t b) { return a | b; }, idle);
    launched_->node_union(bits, polling(idle));
    answer_all(Call::node_union, job::encode_fields(std::vector(bits.begin(), bits.end())));
  }

  std::vector<std::string> gather(const std::string& bytes, const Idle& idle) override {
    std::vector<std::string> of_node = await_all(Call::gather, idle);
    of_node.insert(of_node.begin(), bytes);
    std::vector<std::string> all;
    for (const std::string& packed : launched_->gather(job::encode_fields(of_node), polling(idle))) {
      for (std::string& one : job::decode_fields<std::vector<std::string>>(packed)) all.push_back(std::move(one));
    }
    answer_all(Call::gather, "");
    return all;
  }

  // What stays on the node never goes through MPI.
  Messages exchange(const Messages& outgoing, const Idle& idle) override {
    std::vector<Messages> arrived(1 + guests_.size());  // by place on the node
    Messages leaving;
    const auto deliver = [&](int to, Message message) {
      arrived[static_cast<std::size_t>(to - rank())].push_back(std::move(message));
    };
    const auto dispatch = [&](int from, const Messages& messages) {
      for (const auto& [to, bytes] : messages) {
        if (launched_rank(to) == launched_->rank()) {
          deliver(to, {from, bytes});
        } else {
          leaving.emplace_back(launched_rank(to), job::encode_fields(Parcel{{to, from}, bytes}));
        }
      }
    };
    const std::vector<std::string> of_guests = await_all(Call::exchange, idle);
    dispatch(rank(), outgoing);
    for (std::size_t i = 0; i < of_guests.size(); ++i)
      dispatch(rank() + 1 + static_cast<int>(i), job::decode_fields<Messages>(of_guests[i]));
    for (const auto& [from, bytes] : launched_->exchange(leaving, polling(idle))) {
      auto [way, content] = job::decode_fields<Parcel>(bytes);
      deliver(way.first, {way.second, std::move(content)});
    }
    for (std::size_t i = 0; i < guests_.size(); ++i)
      guests_[i].link().send(Call::exchange, job::encode_fields(arrived[1 + i]));
    return arrived[0];
  }

  void send(int to, const Note& note) override {
    Note addressed = note;
    addressed.to = to;
    pass_on(addressed);
  }

  std::optional<Note> receive() override {
    look_around();
    if (own_notes_.empty()) return std::nullopt;
    const Note note = own_notes_.front();
    own_notes_.pop_front();
    return note;
  }

  void flush_notes(const Idle& idle) override { launched_->flush_notes(polling(idle)); }

  void finish() override {
    end_guests();
    launched_->finish();
  }

  void abandon(int exit_code) override { launched_->abandon(exit_code); }

 private:
  int first(int launched) const { return firsts_[static_cast<std::size_t>(launched)]; }
  /// The launched rank that speaks for a rank.
  int launched_rank(int rank) const {
    return static_cast<int>(std::ranges::upper_bound(firsts_, rank) - firsts_.begin()) - 1;
  }

  void pass_on(const Note& note) {
    const auto to = static_cast<int>(note.to);
    if (to == rank()) {
      own_notes_.push_back(note);
    } else if (launched_rank(to) == launched_->rank()) {
      guests_[static_cast<std::size_t>(to - rank() - 1)].link().send(note);
    } else {
      launched_->send(launched_rank(to), note);
    }
  }

  // Moves what is under way between the guests and the others. Does not wait.
  void look_around() {
    for (std::size_t i = 0; i < guests_.size(); ++i) {
      GuestLink& link = guests_[i].link();
      link.pump();
      while (const auto note = link.next_note()) pass_on(*note);
      if (link.closed()) lost(i);
    }
    while (const auto note = launched_->receive()) pass_on(*note);
  }
  Idle polling(const Idle& idle) {
    return [this, &idle] {
      look_around();
      if (idle) idle();
    };
  }

  [[noreturn]] void lost(std::size_t guest) {
    if (std::exchange(said_lost_, true)) throw Error("");
    const auto end = guests_[guest].wait(dying_s);
    std::string how = "it closed its connection";
    if (end && end->signal == 0) how = fmt::format("it exited with code {}", end->exit_code);
    if (end && end->signal != 0)
      how = fmt::format("it was killed by {}, not by harness; the kernel's log (dmesg) may say why",
                        describe_signal(end->signal));
    fail("rank {} on {}, which rank {} started for a GPU of its own, ended too early: {}",
         rank() + 1 + static_cast<int>(guest), machine::host_name(), rank(), how);
  }

  // What each guest says in the call that this rank is in.
  std::vector<std::string> await_all(Call call, const Idle& idle) {
    std::vector<std::string> said;
    Waiter waiter(max_sleep_s());
    while (said.size() < guests_.size()) {
      look_around();
      if (auto frame = guests_[said.size()].link().next()) {
        if (frame->call != call) fail("the ranks of a node make different calls: this is a defect of harness");
        said.push_back(std::move(frame->bytes));
        continue;
      }
      if (idle) idle();
      waiter.sleep();
    }
    return said;
  }
  template <class T, class Both>
  void merge(Call call, std::span<T> values, Both both, const Idle& idle) {
    for (const std::string& bytes : await_all(call, idle)) {
      const auto others = job::decode_fields<std::vector<T>>(bytes);
      std::ranges::transform(values, others, values.begin(), both);
    }
  }
  void answer_all(Call call, const std::string& bytes) {
    for (GuestProcess& guest : guests_) guest.link().send(call, bytes);
  }

  // The last answer may still be on its way to them.
  void end_guests() {
    const auto began = std::chrono::steady_clock::now();
    for (GuestProcess& guest : guests_) {
      while (!guest.wait(max_sleep_s()) && seconds_since(began) < leaving_s) guest.link().pump();
      guest.kill();
      guest.wait(dying_s);
    }
  }

  std::unique_ptr<Ranks> launched_;
  std::vector<int> firsts_, node_ranks_;
  std::deque<GuestProcess> guests_;  // in the order of their ranks
  std::deque<Note> own_notes_;
  bool said_lost_ = false;
};

}  // namespace

std::unique_ptr<Ranks> with_guests(std::unique_ptr<Ranks> launched, int wanted) {
  const std::int32_t own = launched->node_ranks().size() == 1 ? std::max(1, wanted) : 1;
  std::vector<int> firsts{0};
  for (const std::string& count : launched->gather(job::encode_fields(own), {}))
    firsts.push_back(firsts.back() + job::decode_fields<std::int32_t>(count));
  std::string bytes = job::encode_fields(firsts);
  launched->broadcast(bytes, {});
  firsts = job::decode_fields<std::vector<int>>(bytes);
  if (firsts.back() == launched->size()) return launched;
  return std::make_unique<HostRanks>(std::move(launched), std::move(firsts));
}

}  // namespace harness::mpi
