#include "job/messages.h"

#include <cstddef>
#include <cstring>

#include "base/error.h"
#include "config/model.h"
#include "config/registry.h"
#include "job/wire.h"

namespace harness::job {
namespace {
constexpr std::size_t header_bytes = sizeof(std::uint32_t) + sizeof(std::uint64_t);
constexpr std::uint64_t mib = std::uint64_t{1} << 20;
}  // namespace

std::uint64_t max_payload_bytes(FrameType type) {
  switch (type) {
    case FrameType::ready:
    case FrameType::go:
    case FrameType::ask:
    case FrameType::bye:
      return 0;
    case FrameType::progress:
    case FrameType::last_words:
      return 4096;  // a WorkerProgress
    case FrameType::failure:
      return mib;
    case FrameType::order:
    case FrameType::published:
    case FrameType::peers:
      return 64 * mib;  // some 4 KiB for each of 16,384 ranks
    case FrameType::samples:
      break;
  }
  return 512 * mib;  // the durations of communications alone may be 256 MiB
}

void FrameReader::append(std::string_view bytes) {
  if (!damaged_) buffer_.append(bytes);
}

std::string frame_bytes(FrameType type, std::string_view payload) {
  std::string bytes(header_bytes, '\0');
  const auto code = static_cast<std::uint32_t>(type);
  const std::uint64_t length = payload.size();
  std::memcpy(bytes.data(), &code, sizeof code);
  std::memcpy(bytes.data() + sizeof code, &length, sizeof length);
  bytes.append(payload);
  return bytes;
}

std::optional<Frame> FrameReader::next() {
  if (damaged_ || buffer_.size() < header_bytes) return std::nullopt;
  std::uint32_t code = 0;
  std::uint64_t length = 0;
  std::memcpy(&code, buffer_.data(), sizeof code);
  std::memcpy(&length, buffer_.data() + sizeof code, sizeof length);
  if (code < static_cast<std::uint32_t>(FrameType::order) || code > static_cast<std::uint32_t>(FrameType::bye) ||
      length > max_payload_bytes(static_cast<FrameType>(code))) {
    damaged_ = true;
    std::string().swap(buffer_);
    return std::nullopt;
  }
  if (buffer_.size() < header_bytes + length) return std::nullopt;
  Frame frame{static_cast<FrameType>(code), buffer_.substr(header_bytes, length)};
  buffer_.erase(0, header_bytes + length);
  return frame;
}

namespace {

NameValues texts_of(const config::Settings& settings) {
  NameValues texts;
  for (const config::Variable& variable : config::registry())
    texts.emplace_back(variable.name, variable.print(settings));
  return texts;
}

config::Settings settings_of(const NameValues& texts) {
  config::Settings settings;
  for (const auto& [name, text] : texts) {
    const config::Variable* variable = config::find_variable(name);
    if (variable == nullptr) {
      fail(
          "a block's settings name '{}', which is not a variable of this program: check that all nodes run the same "
          "build of harness",
          name);
    }
    variable->parse(settings, text);
  }
  return settings;
}

// A field that no variable prints would silently have its default in the workers.
void each_setting(const config::Settings& settings, WireWriter& out) {
  const NameValues texts = texts_of(settings);
  if (settings_of(texts) != settings) {
    fail(
        "a case's settings cannot be sent to the workers: a variable of the registry does not print what it parses, or "
        "a setting has no variable (a bug, please report it)");
  }
  out.put(texts);
}

void each_setting(config::Settings& settings, WireReader& in) {
  NameValues texts;
  in.get(texts);
  settings = settings_of(texts);
}

// The fields of each message, in the order in which they travel. What is not here travels as its bytes.
struct MessageFields {
  static void of(MessageOf<config::Model> auto& m, auto& each) {
    each(m.name);
    config::each_key(m, [&](const config::ModelKey& /*key*/, auto& value) { each(value); });
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
  static void of(MessageOf<JobOrder> auto& m, auto& each) {
    each(m.kind, m.exit_code, m.block);
    if (m.kind == JobOrder::Kind::run) each(m.environment, m.on);
    if (m.kind == JobOrder::Kind::ask) each(m.question);
  }
  static void of(MessageOf<RendezvousMessage> auto& m, auto& each) { each(m.peer, m.key, m.bytes); }
  static void of(MessageOf<Published> auto& m, auto& each) { each(m.program_hash, m.messages); }
  static void of(MessageOf<ProbeSamples> auto& m, auto& each) { each(m.identity, m.device, m.peak_flops, m.bound); }
  static void of(MessageOf<HostCopySamples> auto& m, auto& each) { each(m.device, m.rates); }
  static void of(MessageOf<TuneSamples> auto& m, auto& each) { each(m.tuning); }
  static void of(MessageOf<ObserveSamples> auto& m, auto& each) { each(m.nccl_log); }
  static void of(MessageOf<KindTotal> auto& m, auto& each) { each(m.kind, m.stream, m.seconds, m.operations); }
  static void of(MessageOf<ProfiledStep> auto& m, auto& each) {
    each(m.timeline, m.step_s, m.loading_s, m.totals, m.communication_s, m.split);
  }
  static void of(MessageOf<TimelineSamples> auto& m, auto& each) {
    each(m.timeline, m.step_s, m.loading_s, m.totals, m.communication_s, m.split, m.gradient, m.all, m.offered);
  }
  static void of(MessageOf<TimedSamples> auto& m, auto& each) {
    each(m.step_s, m.losses, m.timed_total_s, m.skipped_steps, m.gpu);
  }
  static void of(MessageOf<Samples> auto& m, auto& each) { each(m.task, m.set_up, m.peak_memory_bytes, m.warnings); }
  static void of(MessageOf<WorkerFailure> auto& m, auto& each) { each(m.kind, m.progress, m.text); }
};

}  // namespace

template <class M, class Each>
requires requires(M& m, Each& each) {
  MessageFields::of(m, each);
}
void each_field(M& m, Each& each) {
  MessageFields::of(m, each);
}

template <class Message>
std::string encode(const Message& message) {
  return encode_fields(message);
}

template <class Message>
Message decode(std::string_view bytes) {
  return decode_fields<Message>(bytes);
}

template std::string encode(const WorkerOrder&);
template std::string encode(const JobOrder&);
template std::string encode(const Published&);
template std::string encode(const std::vector<RendezvousMessage>&);
template std::string encode(const Samples&);
template std::string encode(const WorkerFailure&);
template WorkerOrder decode(std::string_view);
template JobOrder decode(std::string_view);
template Published decode(std::string_view);
template std::vector<RendezvousMessage> decode(std::string_view);
template Samples decode(std::string_view);
template WorkerFailure decode(std::string_view);

const char* describe(WorkerPhase phase) {
  static constexpr std::array words{"while it started",
                                    "while it built its Program",
                                    "while it waited for the addresses of its peers",
                                    "while it connected to its peers",
                                    "while it initialised weights",
                                    "while it waited for the other ranks to be ready",
                                    "in a step",
                                    "after its last step"};
  const auto place = static_cast<std::size_t>(phase);  // a broken worker may send any
  return place < words.size() ? words[place] : "";
}

}  // namespace harness::job
