#pragma once

#include <string>

namespace harness {

/// Bytes one worker wants another to have before communicators can connect: addresses, unique ids.
struct RendezvousMessage {
  int peer = 0;  // sending: the rank it is for; received: the rank it came from
  std::string key;
  std::string bytes;
};

}  // namespace harness
