#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace harness::job {

/// What a frame between a supervisor and its worker says. Down: order, peers, go, ask, bye. Up: the others.
enum class FrameType : std::uint32_t {
  order = 1,  // WorkerOrder as JSON
  published,  // hello: program hash, identity; rendezvous messages for others
  peers,      // rendezvous messages from others
  ready,      // initialised, will run at `go`
  go,
  ask,         // where are you? answered by `progress` from a thread that is never busy
  progress,    // WorkerProgress
  samples,     // BlockSamples
  failure,     // WorkerFailure, then the worker ends
  last_words,  // WorkerProgress, written while crashing
  bye,         // your samples have arrived: end
};

/// The descriptors of the pipes between them in a worker. Not 0 and 1, because profilers and libraries print; and high,
/// because scripts take low ones for themselves.
inline constexpr int orders_descriptor = 198, reports_descriptor = 199;

struct Frame {
  FrameType type{};
  std::string payload;
};

/// The most that a payload of this type can be. A stream that announces more does not come from a worker of harness.
std::uint64_t max_payload_bytes(FrameType type);

/// A frame as bytes: type (32 bits), length (64 bits), payload.
std::string frame_bytes(FrameType type, std::string_view payload);

/// Reassembles frames from a byte stream.
class FrameReader {
 public:
  /// Keeps nothing of a damaged stream.
  void append(std::string_view bytes);
  /// The next complete frame, if there is one.
  std::optional<Frame> next();
  /// The stream held bytes that are not a frame: next() returns nothing any more.
  bool damaged() const { return damaged_; }

 private:
  std::string buffer_;
  bool damaged_ = false;
};

}  // namespace harness::job
