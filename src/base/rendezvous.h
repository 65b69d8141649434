#pragma once

#include <string>

namespace harness {

/// Bytes that a worker sends another before communicators can connect: addresses, unique ids.
struct RendezvousMessage {
  int peer = 0;  // destination rank when sent, source rank when received
  std::string key;
  std::string bytes;
};

}  // namespace harness
