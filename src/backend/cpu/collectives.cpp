#include "backend/cpu/links.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/alltoall.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "backend/cpu/kernels.h"

namespace harness::cpu {
namespace {

using gloo::transport::UnboundBuffer;

// Gloo does not add bf16 and f16, but its class template only copies elements, so it works for them with this function.
template <class T, program::Reduction reduction>
void add_in(T* to, const T* from, std::size_t n) {
  const program::DType half = std::is_same_v<T, bf16> ? program::DType::bf16 : program::DType::f16;
  const program::DType type = std::is_same_v<T, float> ? program::DType::f32 : half;
  reduce({to, type, static_cast<std::int64_t>(n)}, to, from, reduction);
}

void copy(backend::Tensor in, backend::Tensor out) {
  if (out.data != in.data) std::memmove(out.data, in.data, out.bytes());
}

template <class T>
Transfer all_reduce_by_halving(const ContextPointer& context, backend::Tensor in, backend::Tensor data,
                               program::Reduction reduction) {
  struct Halving {
    gloo::ReductionFunction<T> function;
    gloo::AllreduceHalvingDoubling<T> algorithm;
    Halving(const ContextPointer& on, backend::Tensor of, program::Reduction by)
        : function(gloo::CUSTOM, by == program::Reduction::sum ? &add_in<T, program::Reduction::sum>
                                                               : &add_in<T, program::Reduction::max>),
          algorithm(on, std::vector<T*>{of.as<T>()}, static_cast<int>(of.count), &function) {}
  };
  return {.finish = [halving = std::make_shared<Halving>(context, data, reduction), in, data] {
    copy(in, data);  // the algorithm works in place
    halving->algorithm.run();
  }};
}

// Ring reduce-scatter in n - 1 rounds. In each, a rank sends a partial sum to the right and adds its own input to the
// one from the left. Its own part arrives last. Parts travel in segments, so that reduction overlaps with transfer.
class RingReduceScatter {
 public:
  RingReduceScatter(ContextPointer context, backend::Tensor in, backend::Tensor out, program::Reduction reduction)
      : context_(std::move(context)), in_(in), out_(out), reduction_(reduction) {
    part_bytes_ = out.bytes();
    segment_bytes_ = std::min<std::size_t>(std::max<std::size_t>(part_bytes_, 1), std::size_t{256} << 10);
    context_->reserve_scratch(2 * part_bytes_);
    own_ = context_->createUnboundBuffer(in.data, in.bytes());
  }

  void run() {
    if (part_bytes_ == 0) return;
    for (int i = 0; i < 2; ++i) {
      if (!buffers_[i]) buffers_[i] = context_->createUnboundBuffer(context_->scratch() + i * part_bytes_, part_bytes_);
    }
    const int n = context_->size, right = (context_->rank + 1) % n, left = (context_->rank + n - 1) % n;
    constexpr std::uint64_t slot = 0xff00000000000000u;  // no Gloo collective has this prefix
    each_segment([&](std::size_t at, std::size_t size) {
      buffers_[0]->recv(left, slot, at, size);
      own_->send(right, slot, part_offset(1) + at, size);
    });
    for (int round = 0; round < n - 1; ++round) {
      const bool last = round == n - 2;
      UnboundBuffer &arrived = *buffers_[round % 2], &other = *buffers_[(round + 1) % 2];
      UnboundBuffer& sent = round == 0 ? *own_ : other;
      each_segment([&](std::size_t at, std::size_t size) {
        arrived.waitRecv();
        char* partial = static_cast<char*>(arrived.ptr) + at;
        const char* mine = in_.as<char>() + part_offset(round + 2) + at;
        const auto count = static_cast<std::int64_t>(size) / program::size_of(in_.type);
        reduce({last ? out_.as<char>() + at : partial, in_.type, count}, partial, mine, reduction_);
        if (!last) arrived.send(right, slot, at, size);
        sent.waitSend();
        if (!last) other.recv(left, slot, at, size);
      });
    }
  }

 private:
  // Offset in the input of the part that is `back` places before the rank's own.
  std::size_t part_offset(int back) const {
    const int n = context_->size;
    return (context_->rank + 2 * n - back) % n * part_bytes_;
  }
  template <class F>
  void each_segment(F&& f) {
    for (std::size_t at = 0; at < part_bytes_; at += segment_bytes_) f(at, std::min(segment_bytes_, part_bytes_ - at));
  }

  ContextPointer context_;
  backend::Tensor in_, out_;
  program::Reduction reduction_;
  std::size_t part_bytes_ = 0, segment_bytes_ = 1;
  std::unique_ptr<UnboundBuffer> buffers_[2], own_;
};

Transfer make_all_reduce(const ContextPointer& context, backend::Tensor in, backend::Tensor data,
                         program::Reduction reduction, config::AllReduceAlgorithm algorithm) {
  if (algorithm == config::AllReduceAlgorithm::halving_doubling) {
    if (data.bytes() >= std::numeric_limits<int>::max()) {
      fail(
          "Gloo's halving-doubling all-reduce takes less than 2 GiB at a time, got {} bytes; use a smaller "
          "bucket_size or another allreduce_algorithm",
          data.bytes());
    }
    Transfer transfer;
    backend::with_type(
        data.type, [&](auto tag) { transfer = all_reduce_by_halving<decltype(tag)>(context, in, data, reduction); });
    return transfer;
  }
  return {.finish = [=] {
    gloo::AllreduceOptions options(context);
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    backend::with_type(data.type, [&](auto tag) {
      using T = decltype(tag);  // Gloo uses only its size
      if (in.data != data.data) options.setInput(in.as<T>(), in.count);
      options.setOutput(data.as<T>(), data.count);
    });
    options.setReduceFunction([=](void* to, const void* a, const void* b, std::size_t n) {
      reduce({to, data.type, static_cast<std::int64_t>(n)}, a, b, reduction);
    });
    gloo::allreduce(options);
  }};
}

Transfer make_all_gather(const ContextPointer& context, backend::Tensor in, backend::Tensor out) {
  return {.finish = [=] {
    gloo::AllgatherOptions options(context);
    const bool in_place = in.data == out.as<char>() + context->rank * in.bytes();
    if (!in_place) options.setInput(in.as<char>(), in.bytes());
    options.setOutput(out.as<char>(), out.bytes());
    gloo::allgather(options);
  }};
}

Transfer make_all_to_all(const ContextPointer& context, backend::Tensor in, backend::Tensor out) {
  return {.finish = [=] {
    gloo::AlltoallOptions options(context);
    options.setInput(in.as<char>(), in.bytes());
    options.setOutput(out.as<char>(), out.bytes());
    gloo::alltoall(options);
  }};
}

Transfer make_message(const ContextPointer& context, backend::Tensor data, bool sends) {
  struct Message {
    ContextPointer context;  // outlives the buffer
    std::unique_ptr<UnboundBuffer> buffer;
  };
  // Messages between two ranks arrive in the order in which they were posted, so one slot serves all.
  constexpr std::uint64_t slot = 0;
  const int peer = 1 - context->rank;
  const auto message =
      std::make_shared<Message>(Message{context, context->createUnboundBuffer(data.data, data.bytes())});
  if (sends)
    return {.start = [=] { message->buffer->send(peer, slot); }, .finish = [=] { message->buffer->waitSend(); }};
  return {.start = [=] { message->buffer->recv(peer, slot); }, .finish = [=] { message->buffer->waitRecv(); }};
}

}  // namespace

Transfer make_transfer(const ContextPointer& context, const program::Action& action, backend::Tensor in,
                       backend::Tensor out, config::AllReduceAlgorithm algorithm) {
  if (!context) return {.finish = [=] { copy(in, out); }};
  if (program::peer_of(action) != nullptr)
    return make_message(context, in, std::holds_alternative<program::Send>(action));
  if (const auto* reduce = std::get_if<program::AllReduce>(&action))
    return make_all_reduce(context, in, out, reduce->reduction, algorithm);
  if (const auto* scatter = std::get_if<program::ReduceScatter>(&action)) {
    const auto ring = std::make_shared<RingReduceScatter>(context, in, out, scatter->reduction);
    return {.finish = [ring] { ring->run(); }};
  }
  return std::holds_alternative<program::AllGather>(action) ? make_all_gather(context, in, out)
                                                            : make_all_to_all(context, in, out);
}

}  // namespace harness::cpu
