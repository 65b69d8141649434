#include "launch/messages.h"

#include "base/error.h"
#include "launch/wire.h"

namespace harness {
namespace {

void put(WireWriter& out, const std::vector<RendezvousMessage>& messages) {
  out.put(static_cast<std::uint64_t>(messages.size()));
  for (const RendezvousMessage& message : messages) {
    out.put(message.peer);
    out.put(message.key);
    out.put(message.bytes);
  }
}

std::vector<RendezvousMessage> get_rendezvous(WireReader& in) {
  std::uint64_t count = 0;
  in.get(count);
  std::vector<RendezvousMessage> messages;
  for (std::uint64_t i = 0; i < count; ++i) {
    RendezvousMessage& message = messages.emplace_back();
    in.get(message.peer);
    in.get(message.key);
    in.get(message.bytes);
  }
  return messages;
}

// All fields of the samples, once for both directions.
template <class Samples, class Each>
void each_plain_field(Samples& s, Each&& each) {
  each(s.step_seconds);
  each(s.losses);
  each(s.timed_total_seconds);
  each(s.build_seconds);
  each(s.connect_seconds);
  each(s.initialize_seconds);
  each(s.first_step_seconds);
  each(s.peak_memory_bytes);
  each(s.timeline);
  each(s.profiled_step_seconds);
  each(s.loading_s);
  each(s.peak_flops_fp32);
  each(s.peak_flops_bf16);
  each(s.communication_s);
  each(s.split);
  each(s.device);
  each(s.tuning);
  each(s.nccl_log);
  each(s.gpu);
  each(s.identity);
  each(s.warnings);
}

}  // namespace

std::string encode(const Published& published) {
  WireWriter out;
  out.put(published.program_hash);
  put(out, published.messages);
  return out.take();
}

Published decode_published(std::string_view bytes) {
  WireReader in(bytes);
  Published published;
  in.get(published.program_hash);
  published.messages = get_rendezvous(in);
  return published;
}

std::string encode(const std::vector<RendezvousMessage>& messages) {
  WireWriter out;
  put(out, messages);
  return out.take();
}

std::vector<RendezvousMessage> decode_rendezvous(std::string_view bytes) {
  WireReader in(bytes);
  return get_rendezvous(in);
}

std::string encode(const BlockSamples& samples) {
  WireWriter out;
  each_plain_field(samples, [&](const auto& field) { out.put(field); });
  out.put(static_cast<std::uint64_t>(samples.totals.size()));
  for (const KindTotal& total : samples.totals) {
    out.put(total.kind);
    out.put(total.stream);
    out.put(total.seconds);
    out.put(total.operations);
  }
  return out.take();
}

BlockSamples decode_samples(std::string_view bytes) {
  WireReader in(bytes);
  BlockSamples samples;
  each_plain_field(samples, [&](auto& field) { in.get(field); });
  std::uint64_t count = 0;
  in.get(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    KindTotal& total = samples.totals.emplace_back();
    in.get(total.kind);
    in.get(total.stream);
    in.get(total.seconds);
    in.get(total.operations);
  }
  return samples;
}

std::string encode(const WorkerFailure& failure) {
  WireWriter out;
  out.put(failure.kind);
  out.put(failure.progress);
  out.put(failure.text);
  return out.take();
}

WorkerFailure decode_failure(std::string_view bytes) {
  WireReader in(bytes);
  WorkerFailure failure;
  in.get(failure.kind);
  in.get(failure.progress);
  in.get(failure.text);
  return failure;
}

const char* describe(WorkerPhase phase) {
  switch (phase) {
    case WorkerPhase::starting:
      return "while it started";
    case WorkerPhase::building:
      return "while it built its Program";
    case WorkerPhase::exchanging:
      return "while it waited for the addresses of its peers";
    case WorkerPhase::connecting:
      return "while it connected to its peers";
    case WorkerPhase::initializing:
      return "while it initialised weights";
    case WorkerPhase::ready:
      return "while it waited for the other ranks to be ready";
    case WorkerPhase::stepping:
      return "in a step";
    case WorkerPhase::done:
      return "after its last step";
  }
  return "";
}

}  // namespace harness
