#include <bit>

#include "backend/cuda/kernels/launch.cuh"

namespace harness::cuda {
namespace {

// Copy raw bytes, or fill them with a 4-byte pattern, whatever their type. Unit: 2 bytes.
struct Copy {
  const bf16* in;
  bf16* out;
  static constexpr int lanes = 8;
  template <int n>
  using In = Raw<bf16, n>;
  template <int n>
  __device__ __forceinline__ In<n> load(std::int64_t i) const {
    return load_raw<n>(in + i);
  }
  template <int n>
  __device__ __forceinline__ void store(std::int64_t i, const In<n>& raw) const {
    store_raw(out + i, raw);
  }
};

struct Pattern {
  bf16* out;
  std::uint32_t word;
  static constexpr int lanes = 8;
  template <int n>
  struct In {};
  template <int n>
  __device__ __forceinline__ In<n> load(std::int64_t) const {
    return {};
  }
  template <int n>
  __device__ __forceinline__ void store(std::int64_t i, const In<n>&) const {
    Raw<bf16, n> raw;
    if constexpr (n == 1) {
      raw.half = static_cast<std::uint16_t>(i % 2 ? word >> 16 : word);
    } else {
#pragma unroll
      for (int k = 0; k < n / 2; ++k) raw.word[k] = word;
    }
    store_raw(out + i, raw);
  }
};

template <class From, class To>
struct ConvertMap {
  const From* in;
  To* out;
  static constexpr int lanes = 8;
  template <int n>
  using In = Raw<From, n>;
  template <int n>
  __device__ __forceinline__ In<n> load(std::int64_t i) const {
    return load_raw<n>(in + i);
  }
  template <int n>
  __device__ __forceinline__ void store(std::int64_t i, const In<n>& raw) const {
    float v[n];
    unpack(raw, v);
    cuda::store(out + i, v);
  }
};

__global__ void record_one(const float* value, float* ring, std::int64_t ring_count, std::int32_t* counter) {
  if (threadIdx.x != 0) return;
  const std::int32_t at = *counter;
  ring[at % ring_count] = *value;
  *counter = at + 1;
}

std::uint32_t pattern_of(program::DType type, double value) {
  switch (type) {
    case program::DType::i32:
      return static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
    case program::DType::bf16:
      return to_bf16(static_cast<float>(value)).bits * 0x10001u;
    case program::DType::f16:
      return to_f16(static_cast<float>(value)).bits * 0x10001u;
    case program::DType::e4m3:
    case program::DType::e5m2:
      throw Error("the cuda backend fills no buffers of 8-bit floats");
    case program::DType::e8m0:
      return static_cast<std::uint32_t>(std::ilogb(value) + 127) * 0x01010101u;
    case program::DType::f32:
      break;
  }
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

}  // namespace

void run(Stream stream, const backend::Bound<program::Fill>& op, const backend::KernelContext&) {
  const Pattern pattern{op.out.as<bf16>(), pattern_of(op.out.type, op.value)};
  launch_flat("fill", stream, pattern, op.out.bytes() / 2);
}

void run(Stream stream, const backend::Bound<program::Convert>& op, const backend::KernelContext&) {
  const backend::Tensor &in = op.in, &out = op.out;
  if (in.type == out.type) {
    launch_flat("convert", stream, Copy{in.as<const bf16>(), out.as<bf16>()}, out.bytes() / 2);
    return;
  }
  backend::with_type(in.type, [&](auto from) {
    backend::with_type(out.type, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      if constexpr (std::is_same_v<From, float> != std::is_same_v<To, float>) {
        launch_flat("convert", stream, ConvertMap<From, To>{in.as<const From>(), out.as<To>()}, out.count);
      } else {
        throw Error("the cuda backend does not convert between bf16 and f16");
      }
    });
  });
}

void run(Stream stream, const backend::Bound<program::Record>& op, const backend::KernelContext&) {
  launch("record", record_one, {1, 32}, stream, op.value.f32(), op.ring.f32(), op.ring.count,
         op.counter.as<std::int32_t>());
}

}  // namespace harness::cuda
