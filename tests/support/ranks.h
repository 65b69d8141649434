#pragma once

#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "backend/backend.h"

namespace harness::test {

/// Runs work(rank) for all ranks at once, each on its own thread. Returns by rank what each threw: a rank that fails
/// only ends its own thread.
inline std::vector<std::exception_ptr> on_ranks(int ranks, const std::function<void(int)>& work) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&work, rank, &error = errors[static_cast<std::size_t>(rank)]] {
      try {
        work(rank);
      } catch (...) {
        error = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return errors;
}

/// Throws the first error, if there is any.
inline void rethrow_first(const std::vector<std::exception_ptr>& errors) {
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

/// The rendezvous of ranks in one process: what they publish goes to their peers through memory.
class Rendezvous {
 public:
  explicit Rendezvous(int ranks) : inboxes_(static_cast<std::size_t>(ranks)) {}

  void publish(int rank, backend::Executable& executable) {
    for (const RendezvousMessage& message : executable.publish()) {
      inboxes_[static_cast<std::size_t>(message.peer)].push_back({rank, message.key, message.bytes});
      ++messages_;
    }
  }
  int messages() const { return messages_; }
  const std::vector<RendezvousMessage>& inbox(int rank) const { return inboxes_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<std::vector<RendezvousMessage>> inboxes_;
  int messages_ = 0;
};

}  // namespace harness::test
