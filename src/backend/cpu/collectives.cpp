#include "backend/cpu/collectives.h"

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

std::size_t bytes_of(const backend::Tensor& t) {
  return t.count * program::size_of(t.type);
}

// Gloo wants an element type for its size only.
template <class F>
void with_width(program::DType type, F&& f) {
  switch (program::size_of(type)) {
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      fail("Gloo sends no elements of {}", program::name_of(type));
  }
}

class Copy : public Transfer {
 public:
  Copy(backend::Tensor in, backend::Tensor out) : in_(in), out_(out) {}
  void finish() override {
    if (out_.data != in_.data) std::memmove(out_.data, in_.data, bytes_of(out_));
  }

 private:
  backend::Tensor in_, out_;
};

class AllReduceByFunction : public Transfer {
 public:
  AllReduceByFunction(ContextPointer context, backend::Tensor in, backend::Tensor data, program::Reduction reduction,
                      gloo::AllreduceOptions::Algorithm algorithm)
      : context_(std::move(context)), in_(in), data_(data), reduction_(reduction), algorithm_(algorithm) {}
  void finish() override {
    gloo::AllreduceOptions options(context_);
    options.setAlgorithm(algorithm_);
    with_width(data_.type, [&](auto tag) {
      using T = decltype(tag);
      if (in_.data != data_.data) options.setInput(in_.as<T>(), in_.count);
      options.setOutput(data_.as<T>(), data_.count);
    });
    options.setReduceFunction([this](void* to, const void* a, const void* b, std::size_t n) {
      reduce({to, data_.type, static_cast<std::int64_t>(n)}, a, b, reduction_);
    });
    gloo::allreduce(options);
  }

 private:
  ContextPointer context_;
  backend::Tensor in_, data_;
  program::Reduction reduction_;
  gloo::AllreduceOptions::Algorithm algorithm_;
};

// Gloo's class template only copies elements, so it serves bf16 as well, which Gloo does not know.
template <class T, program::Reduction reduction>
void add_in(T* to, const T* from, std::size_t n) {
  const program::DType type = std::is_same_v<T, float> ? program::DType::f32 : program::DType::bf16;
  reduce({to, type, static_cast<std::int64_t>(n)}, to, from, reduction);
}

template <class T>
class AllReduceHalving : public Transfer {
 public:
  AllReduceHalving(const ContextPointer& context, backend::Tensor in, backend::Tensor data,
                   program::Reduction reduction)
      : copy_(in, data),
        function_(gloo::CUSTOM, reduction == program::Reduction::sum ? &add_in<T, program::Reduction::sum>
                                                                     : &add_in<T, program::Reduction::max>),
        algorithm_(std::make_unique<gloo::AllreduceHalvingDoubling<T>>(context, std::vector<T*>{data.as<T>()},
                                                                       static_cast<int>(data.count), &function_)) {}
  void finish() override {
    copy_.finish();  // the algorithm knows one buffer alone
    algorithm_->run();
  }

 private:
  Copy copy_;
  gloo::ReductionFunction<T> function_;
  std::unique_ptr<gloo::AllreduceHalvingDoubling<T>> algorithm_;
};

// n - 1 rounds; in each, a partial sum of one part goes to the right, the one from the left is added to. The part that
// arrives last is the own one. Parts travel in segments, so that adding one overlaps with moving the next.
class RingReduceScatter : public Transfer {
 public:
  RingReduceScatter(ContextPointer context, backend::Tensor in, backend::Tensor out, program::Reduction reduction)
      : context_(std::move(context)), in_(in), out_(out), reduction_(reduction) {
    part_bytes_ = bytes_of(out);
    segment_bytes_ = std::min<std::size_t>(std::max<std::size_t>(part_bytes_, 1), std::size_t{256} << 10);
    context_->reserve_scratch(2 * part_bytes_);
    own_ = context_->createUnboundBuffer(in.data, bytes_of(in));
  }

  void finish() override {
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
  // Where in the input the part lies that stands `back` places before the own one.
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

class AllGatherRing : public Transfer {
 public:
  AllGatherRing(ContextPointer context, backend::Tensor in, backend::Tensor out)
      : context_(std::move(context)), in_(in), out_(out) {}
  void finish() override {
    gloo::AllgatherOptions options(context_);
    const bool in_place = in_.data == out_.as<char>() + context_->rank * bytes_of(in_);
    with_width(in_.type, [&](auto tag) {
      using T = decltype(tag);
      if (!in_place) options.setInput(in_.as<T>(), in_.count);
      options.setOutput(out_.as<T>(), out_.count);
    });
    gloo::allgather(options);
  }

 private:
  ContextPointer context_;
  backend::Tensor in_, out_;
};

class AllToAllDirect : public Transfer {
 public:
  AllToAllDirect(ContextPointer context, backend::Tensor in, backend::Tensor out)
      : context_(std::move(context)), in_(in), out_(out) {}
  void finish() override {
    gloo::AlltoallOptions options(context_);
    with_width(in_.type, [&](auto tag) {
      using T = decltype(tag);
      options.setInput(in_.as<T>(), in_.count);
      options.setOutput(out_.as<T>(), out_.count);
    });
    gloo::alltoall(options);
  }

 private:
  ContextPointer context_;
  backend::Tensor in_, out_;
};

class PointToPoint : public Transfer {
 public:
  PointToPoint(ContextPointer context, backend::Tensor data, int peer, bool send)
      : context_(std::move(context)),
        buffer_(context_->createUnboundBuffer(data.data, bytes_of(data))),
        peer_(peer),
        send_(send) {}
  // Messages between two ranks arrive in the order in which they were posted, so one slot serves all.
  void start() override { send_ ? buffer_->send(peer_, 0) : buffer_->recv(peer_, 0); }
  void finish() override { send_ ? buffer_->waitSend() : buffer_->waitRecv(); }

 private:
  ContextPointer context_;
  std::unique_ptr<UnboundBuffer> buffer_;
  int peer_;
  bool send_;
};

}  // namespace

std::unique_ptr<Transfer> make_copy(backend::Tensor in, backend::Tensor out) {
  return std::make_unique<Copy>(in, out);
}

std::unique_ptr<Transfer> make_all_reduce(ContextPointer context, backend::Tensor in, backend::Tensor data,
                                          program::Reduction reduction, config::AllReduceAlgorithm algorithm) {
  switch (algorithm) {
    case config::AllReduceAlgorithm::ring:
      break;
    case config::AllReduceAlgorithm::bcube:
      return std::make_unique<AllReduceByFunction>(std::move(context), in, data, reduction,
                                                   gloo::AllreduceOptions::Algorithm::BCUBE);
    case config::AllReduceAlgorithm::halving_doubling: {
      if (bytes_of(data) >= std::numeric_limits<int>::max()) {
        fail(
            "Gloo's halving-doubling all-reduce takes less than 2 GiB at a time, got {} bytes; use a smaller "
            "bucket_size or another allreduce_algorithm",
            bytes_of(data));
      }
      std::unique_ptr<Transfer> transfer;
      backend::with_type(data.type, [&](auto tag) {
        transfer = std::make_unique<AllReduceHalving<decltype(tag)>>(context, in, data, reduction);
      });
      return transfer;
    }
  }
  return std::make_unique<AllReduceByFunction>(std::move(context), in, data, reduction,
                                               gloo::AllreduceOptions::Algorithm::RING);
}

std::unique_ptr<Transfer> make_reduce_scatter(ContextPointer context, backend::Tensor in, backend::Tensor out,
                                              program::Reduction reduction) {
  return std::make_unique<RingReduceScatter>(std::move(context), in, out, reduction);
}
std::unique_ptr<Transfer> make_all_gather(ContextPointer context, backend::Tensor in, backend::Tensor out) {
  return std::make_unique<AllGatherRing>(std::move(context), in, out);
}
std::unique_ptr<Transfer> make_all_to_all(ContextPointer context, backend::Tensor in, backend::Tensor out) {
  return std::make_unique<AllToAllDirect>(std::move(context), in, out);
}
std::unique_ptr<Transfer> make_send(ContextPointer context, backend::Tensor data, int peer) {
  return std::make_unique<PointToPoint>(std::move(context), data, peer, true);
}
std::unique_ptr<Transfer> make_receive(ContextPointer context, backend::Tensor data, int peer) {
  return std::make_unique<PointToPoint>(std::move(context), data, peer, false);
}

std::vector<int> all_partners(int rank, int size) {
  std::vector<int> out;
  for (int r = 0; r < size; ++r) {
    if (r != rank) out.push_back(r);
  }
  return out;
}

std::vector<int> ring_partners(int rank, int size) {
  std::vector<int> out{(rank + 1) % size};
  if (size > 2) out.push_back((rank + size - 1) % size);
  return out;
}

std::vector<int> halving_partners(int rank, int size) {
  if ((size & (size - 1)) != 0) return all_partners(rank, size);  // blocks of different sizes talk across
  std::vector<int> out;
  for (int bit = 1; bit < size; bit *= 2) out.push_back(rank ^ bit);
  return out;
}

}  // namespace harness::cpu
