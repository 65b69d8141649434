#include "selftest/operation_cases.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <thread>
#include <vector>

#include "backend/bound.h"
#include "base/floats.h"
#include "base/random.h"
#include "base/text.h"

namespace harness::selftest {

namespace {

// Poison before and after a view: a multiple of every alignment that a kernel may assume.
constexpr std::int64_t guard_bytes = 512;

template <class T>
void store(std::vector<std::byte>& bytes, std::int64_t index, T value) {
  std::memcpy(bytes.data() + index * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
}

// Not of e8m0, which only operations produce.
void store_number(std::vector<std::byte>& bytes, program::DType type, std::int64_t index, double value) {
  const auto x = static_cast<float>(value);
  if (type == program::DType::i32) return store(bytes, index, static_cast<std::int32_t>(value));
  if (type == program::DType::bf16) return store(bytes, index, to_bf16(x));
  if (type == program::DType::f16) return store(bytes, index, to_f16(x));
  if (type == program::DType::f32) return store(bytes, index, x);
  store(bytes, index, nearest_fp8(backend::fp8_format(type), std::bit_cast<std::uint32_t>(x)));
}

}  // namespace

std::vector<std::byte> initial_bytes(const OperationCase& test_case, std::size_t buffer, std::uint64_t seed,
                                     int threads) {
  const program::Buffer& b = test_case.program.buffers.at(buffer);
  const CaseBuffer& use = test_case.buffers.at(buffer);
  std::vector<std::byte> bytes(b.bytes());
  for_each_chunk(b.count, threads, [&](std::int64_t /*chunk*/, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      if (program::size_of(b.type) == 1) {
        store(bytes, i, poison_byte);
      } else {
        program::size_of(b.type) == 2 ? store(bytes, i, poison_half) : store(bytes, i, poison_f32);
      }
    }
  });
  const Filling& f = use.filling;
  if (f.kind == Filling::Kind::poison) return bytes;
  const std::uint64_t stream = fnv1a(b.name);
  for_each_chunk(use.view.count, threads, [&](std::int64_t /*chunk*/, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const auto index = static_cast<std::uint64_t>(i);
      double value = f.mean;
      if (f.kind == Filling::Kind::uniform) {
        value += static_cast<double>(philox(seed, index, stream)[0] * static_cast<std::uint64_t>(f.limit) >> 32);
      } else if (f.kind == Filling::Kind::counted) {
        value = static_cast<double>(i % f.limit);
      } else if (f.deviation != 0) {
        value += f.deviation * philox_normal(seed, index, stream);
      }
      store_number(bytes, b.type, use.view.offset + i, value);
    }
  });
  return bytes;
}

CaseBuilder::CaseBuilder(program::DType type, bool large, bool tf32) : type_(type) {
  case_.program.streams = {"compute"};
  case_.large = large;
  if (tf32) case_.settings.precision = config::Precision::tf32;
  if (type == program::DType::bf16) case_.settings.precision = config::Precision::bf16;
  if (type == program::DType::f16) case_.settings.precision = config::Precision::fp16;
  // Mantissas of 8 and 11 bits; the tolerance for f32 allows sums in another order.
  case_.tolerance = type != program::DType::f32 || tf32 ? 1e-2 : 1e-4;
}

program::View CaseBuilder::add(const std::string& name, program::DType type, std::int64_t count,
                               const Filling& filling) {
  const std::int64_t guard = guard_bytes / program::size_of(type);
  const program::View view{static_cast<program::BufferId>(case_.program.buffers.size()), guard, count};
  case_.program.buffers.push_back({name, type, count + 2 * guard, program::BufferKind::persistent});
  case_.buffers.push_back({view, filling});
  return view;
}

OperationCase CaseBuilder::take(const program::Action& action, const std::string& name) {
  case_.operation = program::name_of(action);
  case_.program.step.push_back({action, 0, {}, -1, {}});
  case_.name = name + ", " + case_.precision();
  return std::move(case_);
}

std::vector<OperationCase> operation_cases(bool tf32, bool fp8, bool mxfp8) {
  Cases cases;
  for (const program::DType type : {program::DType::f32, program::DType::bf16, program::DType::f16}) {
    add_elementwise_cases(cases, type);
    add_embedding_cases(cases, type);
    add_norm_cases(cases, type);
    add_product_cases(cases, type, false);
    if (type != program::DType::f16) add_quantise_cases(cases, type);
    add_attention_cases(cases, type, false);
    add_rope_cases(cases, type);
    add_loss_cases(cases, type);
    add_optimizer_cases(cases, type);
  }
  if (fp8) add_fp8_product_cases(cases, config::Precision::fp8);
  if (mxfp8) add_fp8_product_cases(cases, config::Precision::mxfp8);
  add_loss_scaling_cases(cases);
  add_compression_cases(cases);
  // Real sizes in one 16-bit type suffice: the kernels differ only in their conversions.
  std::erase_if(cases,
                [](const OperationCase& c) { return c.large && c.settings.precision == config::Precision::fp16; });
  if (tf32) {
    add_product_cases(cases, program::DType::f32, true);
    add_attention_cases(cases, program::DType::f32, true);
  }
  return cases;
}

void for_each_chunk(std::int64_t count, int threads,
                    const std::function<void(std::int64_t chunk, std::int64_t first, std::int64_t last)>& work) {
  const std::int64_t chunks = chunks_of(count);
  std::atomic<std::int64_t> next{0};
  const auto take_chunks = [&] {
    for (std::int64_t c = next++; c < chunks; c = next++) {
      work(c, c * chunk_elements, std::min((c + 1) * chunk_elements, count));
    }
  };
  std::vector<std::thread> helpers;
  for (std::int64_t t = 1; t < std::min<std::int64_t>(threads, chunks); ++t) helpers.emplace_back(take_chunks);
  take_chunks();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace harness::selftest
