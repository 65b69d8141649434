#pragma once

#include <vector>

#include "backend/backend.h"

namespace harness::test {

/// How ranks of one process meet: what they publish goes to their peers through memory.
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
