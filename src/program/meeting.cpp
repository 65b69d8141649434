#include "program/meeting.h"

namespace harness::program {

Communicator communicator_of(const Layout& layout, const Action& action, int self, int partner) {
  if (const GroupId group = group_of(action); group >= 0) return {.group = group, .first = partner};
  const Peer& peer = *peer_of(action);
  const bool sends = std::holds_alternative<Send>(action);
  const int n = layout[peer.axis], as_sender = sends ? peer.offset : -peer.offset;
  return {.axis = peer.axis,
          .first = sends ? self : partner,
          .second = sends ? partner : self,
          .offset = (as_sender % n + n) % n};
}

}  // namespace harness::program
