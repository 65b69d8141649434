#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/rendezvous.h"
#include "base/text.h"
#include "config/model.h"
#include "job/job.h"
#include "machine/tree.h"

namespace harness::job {

// Wire format between processes of one program on machines of one kind: plain values in host byte order, 64-bit
// lengths. A message lists its fields once, for both directions, in an each_field(); types without one are copied as
// bytes.

template <class M, class Message>
concept MessageOf = std::same_as<std::remove_const_t<M>, Message>;

struct NoFields {
  template <class... Fields>
  void operator()(Fields&&...) const {}
};
template <class M>
concept HasFields = requires(M& m, NoFields& each) {
  each_field(m, each);
};

class WireWriter {
 public:
  template <class... Fields>
  void operator()(const Fields&... fields) {
    (put(fields), ...);
  }
  void put(const std::string& text) {
    put(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
  }
  template <class A, class B>
  void put(const std::pair<A, B>& both) {
    put(both.first);
    put(both.second);
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put(static_cast<std::uint64_t>(values.size()));
    for (const T& value : values) put(value);
  }
  template <class... Choices>
  void put(const std::variant<Choices...>& value) {
    put(static_cast<std::uint64_t>(value.index()));
    std::visit([&](const auto& choice) { put(choice); }, value);
  }
  template <class T>
  void put(const T& value) {
    if constexpr (HasFields<const T>) {
      each_field(value, *this);
    } else {
      static_assert(std::is_trivially_copyable_v<T>, "this type needs an each_field()");
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads what WireWriter wrote, in the same order. Throws Error if the bytes end too early.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}
  template <class... Fields>
  void operator()(Fields&... fields) {
    (get(fields), ...);
  }
  void get(std::string& text) {
    std::uint64_t size = 0;
    get(size);
    text = cut(size);
  }
  template <class A, class B>
  void get(std::pair<A, B>& both) {
    get(both.first);
    get(both.second);
  }
  template <class T>
  void get(std::vector<T>& values) {
    std::uint64_t size = 0;
    get(size);
    if (size > rest_.size())
      fail("a message between processes is damaged: {} elements cannot fit in {} bytes", size, rest_.size());
    values.resize(size);
    for (T& value : values) get(value);
  }
  template <class... Choices>
  void get(std::variant<Choices...>& value) {
    std::uint64_t index = 0;
    get(index);
    std::uint64_t candidate = 0;
    const auto take = [&]<class Choice>(Choice choice) {
      if (candidate++ != index) return;
      get(choice);
      value = std::move(choice);
    };
    (take(Choices{}), ...);
    if (index >= candidate) fail("a message between processes is damaged: choice {} of {}", index, candidate);
  }
  template <class T>
  void get(T& value) {
    if constexpr (HasFields<T>) {
      each_field(value, *this);
    } else {
      static_assert(std::is_trivially_copyable_v<T>, "this type needs an each_field()");
      std::memcpy(&value, cut(sizeof value).data(), sizeof value);
    }
  }
  /// Throws Error if bytes are left over.
  void finish() const {
    if (!rest_.empty()) fail("a message between processes is damaged: {} bytes are left over", rest_.size());
  }

 private:
  std::string_view cut(std::uint64_t size) {
    if (size > rest_.size())
      fail("a message between processes is damaged: {} bytes are left where {} are expected", rest_.size(), size);
    const std::string_view head = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return head;
  }
  std::string_view rest_;
};

/// Serialises a message for any worker or supervisor of this program.
template <class Message>
std::string encode(const Message& message) {
  WireWriter out;
  out.put(message);
  return out.take();
}

/// Parses all of `bytes` as one message. Throws Error if they are damaged.
template <class Message>
Message decode(std::string_view bytes) {
  WireReader in(bytes);
  Message message;
  in.get(message);
  in.finish();
  return message;
}

/// The type of a frame between a supervisor and its worker. The supervisor sends order, peers, go, ask and bye, the
/// worker the others.
enum class FrameType : std::uint32_t {
  order = 1,  // WorkerOrder
  published,  // Published
  peers,      // rendezvous messages from others
  ready,      // initialised, will run at `go`
  go,
  ask,         // asks for `progress`, which a thread that is never busy sends
  progress,    // WorkerProgress
  samples,     // Samples
  failure,     // WorkerFailure, then the worker ends
  last_words,  // WorkerProgress, written while crashing
  bye,         // the samples have arrived: the worker ends
};

/// A worker's descriptors of the pipes to its supervisor. Not 0 and 1, because profilers and libraries print there;
/// high, because scripts use low ones themselves.
inline constexpr int orders_descriptor = 198, reports_descriptor = 199;

struct Frame {
  FrameType type{};
  std::string payload;
};

/// The maximum payload of this frame type. A stream that announces more does not come from a worker of harness.
std::uint64_t max_payload_bytes(FrameType type);

/// A frame as bytes: type (32 bits), length (64 bits), payload.
std::string frame_bytes(FrameType type, std::string_view payload);

/// Reassembles frames from a byte stream.
class FrameReader {
 public:
  /// Discards the bytes of a damaged stream.
  void append(std::string_view bytes) {
    if (!damaged_) buffer_.append(bytes);
  }
  /// The next complete frame, if there is one.
  std::optional<Frame> next();
  /// Whether the stream held bytes that are not a frame; next() then returns nothing.
  bool damaged() const { return damaged_; }

 private:
  std::string buffer_;
  bool damaged_ = false;
};

/// The order from a supervisor to its worker.
struct WorkerOrder {
  BlockRequest request;
  int rank = 0;  // of the layout
  int threads = 1;
  double memory_limit_bytes = 0;        // 0: none
  int local_rank = 0, local_ranks = 1;  // among the block's ranks on this node
};

/// An order from rank 0 to the other supervisors.
struct RunBlock {
  std::int64_t block = 0;  // counted from 1
  NameValues environment;  // rank 0's recorded environment
  BlockOnSet on;
};
struct AnswerQuestion {
  std::string question;
};
struct FinishJob {
  std::int32_t exit_code = 0;
};
using JobOrder = std::variant<RunBlock, AnswerQuestion, FinishJob>;

/// The message that a worker sends once its Program is built.
struct Published {
  std::uint64_t program_hash = 0;
  std::vector<RendezvousMessage> messages;
};

/// The phase that a worker is in.
enum class WorkerPhase : std::int32_t {
  starting,
  building,
  exchanging,
  connecting,
  initializing,
  ready,
  stepping,
  done
};
/// The phase in words, for messages: "while it connected to its peers".
const char* describe(WorkerPhase phase);

/// The progress of a worker. Plain bytes: written by a crashing worker, gathered over MPI.
struct WorkerProgress {
  static constexpr std::int64_t no_step = -1, unknown_step = -2;
  WorkerPhase phase = WorkerPhase::starting;
  std::int32_t in_communication = 0;  // waits for other ranks
  std::int64_t step = no_step;
  std::array<char, 120> operation{};  // title of the current operation, "" if none
  std::uint64_t pieces = 0;           // of buffers that it read or wrote between steps so far
};

/// The event that ended one rank's part of a block, ordered from the most likely cause to the most likely victim.
enum class FaultKind : std::int32_t {
  signal,         // the worker was killed by a signal that harness did not send
  out_of_memory,  // it ran into its memory limit
  error,          // it ended with an error message
  early_exit,     // it exited before its samples were complete
  silent,         // time-out: it does not answer
  hung,           // time-out: it is stuck on its own
  waiting,        // time-out: it waits for another rank
  peer_lost,      // another rank went away
  none,
};

/// Why a worker gives up: out_of_memory, error or peer_lost.
struct WorkerFailure {
  FaultKind kind = FaultKind::error;
  WorkerProgress progress;
  std::string text;
};

/// Sends settings as the text of their registry variables. Throws Error for settings that do not survive the round
/// trip: workers would silently use the default of a field that no variable prints.
void each_setting(const config::Settings& settings, WireWriter& out);
void each_setting(config::Settings& settings, WireReader& in);

/// The fields of each message, in the order in which they travel.
struct MessageFields {
  static void of(MessageOf<config::Model> auto& m, auto& each) {
    each(m.name);
    config::each_key(m, [&](const config::ModelKey& /*key*/, auto& value) { each(value); });
  }
  static void of(MessageOf<RankPlace> auto& m, auto& each) {
    each(m.rank, m.local_rank, m.local_ranks, m.node, m.host, m.device, m.cores, m.memory_bytes);
    each(m.gpus.on_node, m.gpus.count, m.gpus.names);
  }
  static void of(MessageOf<BlockRequest> auto& m, auto& each) {
    each(m.case_name, m.backend, m.model);
    each_setting(m.settings, each);
    each(m.layout, m.task, m.warmup_steps, m.seed, m.deadlines, m.memory_limit_bytes, m.tuning, m.wrap, m.share_gpus,
         m.environment);
  }
  static void of(MessageOf<WorkerSet> auto& m, auto& each) { each(m.number, m.ranks); }
  static void of(MessageOf<BlockOnSet> auto& m, auto& each) { each(m.set, m.request, m.last); }
  static void of(MessageOf<WorkerOrder> auto& m, auto& each) {
    each(m.request, m.rank, m.threads, m.memory_limit_bytes, m.local_rank, m.local_ranks);
  }
  static void of(MessageOf<RunBlock> auto& m, auto& each) { each(m.block, m.environment, m.on); }
  static void of(MessageOf<AnswerQuestion> auto& m, auto& each) { each(m.question); }
  static void of(MessageOf<RendezvousMessage> auto& m, auto& each) { each(m.peer, m.key, m.bytes); }
  static void of(MessageOf<Published> auto& m, auto& each) { each(m.program_hash, m.messages); }
  static void of(MessageOf<ProbeSamples> auto& m, auto& each) { each(m.identity, m.device, m.peak_flops); }
  static void of(MessageOf<HostCopySamples> auto& m, auto& each) { each(m.device, m.rates); }
  static void of(MessageOf<TuneSamples> auto& m, auto& each) { each(m.tuning); }
  static void of(MessageOf<ObserveSamples> auto& m, auto& each) { each(m.nccl_log); }
  static void of(MessageOf<KindTotal> auto& m, auto& each) { each(m.kind, m.stream, m.seconds, m.operations); }
  static void of(MessageOf<ProfiledStep> auto& m, auto& each) {
    each(m.timeline, m.step_s, m.loading_s, m.totals, m.communication_s, m.split);
  }
  static void of(MessageOf<TimelineSamples> auto& m, auto& each) {
    each(m.timeline, m.step_s, m.loading_s, m.totals, m.communication_s, m.split, m.gradient, m.offered);
  }
  static void of(MessageOf<TimedSamples> auto& m, auto& each) {
    each(m.step_s, m.losses, m.timed_total_s, m.skipped_steps, m.gpu);
  }
  static void of(MessageOf<Samples> auto& m, auto& each) {
    each(m.task, m.first_step_s, m.peak_memory_bytes, m.warnings);
  }
  static void of(MessageOf<WorkerFailure> auto& m, auto& each) { each(m.kind, m.progress, m.text); }
  static void of(MessageOf<machine::Reading> auto& m, auto& each) { each(m.access, m.text, m.why); }
};
template <class M, class Each>
requires requires(M& m, Each& each) {
  MessageFields::of(m, each);
}
void each_field(M& m, Each& each) {
  MessageFields::of(m, each);
}

}  // namespace harness::job
