#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "program/program.h"

namespace harness::selftest {

/// How a buffer is filled before the operation runs.
struct Filling {
  enum class Kind : std::uint8_t {
    poison,   // NaN: must not be read, and must be overwritten in outputs
    normal,   // mean + deviation * a normal number
    uniform,  // i32: mean .. mean + limit - 1
    counted,  // i32: 0, 1 .. limit - 1, 0, 1 ..
  };
  Kind kind = Kind::poison;
  double mean = 0, deviation = 1;
  std::int64_t limit = 0;
};

/// One buffer of a case. Operations may use `view`; the poison around it must stay.
struct CaseBuffer {
  program::View view;
  Filling filling;
};

/// One operation on its own buffers, run on two backends.
struct OperationCase {
  std::string operation;     // name_of(action)
  std::string name;          // what distinguishes the case: "17 x 33, bf16, bias"
  program::Program program;  // no init; the step is the operation; not lowered
  std::vector<program::Operation>
      prepare;  // run before by the oracle alone, for inputs that depend on others, such as a row's mean
  std::vector<CaseBuffer> buffers;
  program::Layout layout;  // `rank` of it runs the operation, which never communicates
  int rank = 0;
  config::Settings settings;
  double tolerance = 0;  // relative, for the largest difference and for the norm
  bool large = false;    // real sizes, which take seconds on a CPU

  std::string precision() const { return config::name_of(settings.precision); }
};

/// Cases of every compute operation: odd widths, optional views present and absent, with and without accumulation, f32,
/// bf16 and f16, shards, both kinds of attention, and all matrix products of the GPT step. Optional features of a
/// backend: `tf32`, f32 products on tensor cores; `fp8`, products of 8-bit floats; `mxfp8`, those with block scales.
std::vector<OperationCase> operation_cases(bool tf32, bool fp8, bool mxfp8);

/// The content of a buffer before the operation, including guards. It depends only on the seed and the buffer's name,
/// not on the number of threads.
std::vector<std::byte> initial_bytes(const OperationCase& test_case, std::size_t buffer, std::uint64_t seed,
                                     int threads = 1);
/// The bits of poison: a NaN that arithmetic does not produce.
inline constexpr std::uint16_t poison_half = 0x7fd5;     // of bf16 and f16
inline constexpr std::uint8_t poison_byte = 0xff;        // 8-bit floats: Quantise produces the NaN with a positive sign
inline constexpr std::uint32_t poison_f32 = 0x7fd5a5c3;  // also in i32 buffers

inline constexpr std::int64_t chunk_elements = 1 << 16;  // takes some hundred microseconds
inline std::int64_t chunks_of(std::int64_t count) {
  return (count + chunk_elements - 1) / chunk_elements;
}

/// Calls work(chunk, first, last) for every chunk of [0, count), on at most `threads` threads. The chunks do not depend
/// on the number of threads, so results joined in chunk order do not either. `work` must not throw.
void for_each_chunk(std::int64_t count, int threads,
                    const std::function<void(std::int64_t chunk, std::int64_t first, std::int64_t last)>& work);

/// Builds an OperationCase: names its buffers and sets their content.
class CaseBuilder {
 public:
  /// `large`: real sizes, which take seconds on a CPU.
  explicit CaseBuilder(program::DType type, bool large = false, bool tf32 = false);

  program::DType type() const { return type_; }
  program::View normal(const std::string& name, std::int64_t count, double deviation = 1, double mean = 0) {
    return normal(name, type_, count, deviation, mean);
  }
  program::View normal(const std::string& name, program::DType type, std::int64_t count, double deviation = 1,
                       double mean = 0) {
    return add(name, type, count, {Filling::Kind::normal, mean, deviation, 0});
  }
  /// `count` numbers from [first, first + limit).
  program::View whole_numbers(const std::string& name, std::int64_t count, std::int64_t limit, std::int64_t first = 0) {
    return add(name, program::DType::i32, count, {Filling::Kind::uniform, static_cast<double>(first), 0, limit});
  }
  /// Position ids for documents of this many tokens.
  program::View position_ids(std::int64_t count, std::int64_t document) {
    return add("position_ids", program::DType::i32, count, {Filling::Kind::counted, 0, 0, document});
  }
  program::View constant(const std::string& name, program::DType type, double value) {
    return normal(name, type, 1, 0, value);
  }
  /// Written only.
  program::View output(const std::string& name, std::int64_t count) { return output(name, type_, count); }
  program::View output(const std::string& name, program::DType type, std::int64_t count) {
    return add(name, type, count, {});
  }
  /// Written, or added to: then initialised with numbers.
  program::View result(const std::string& name, program::DType type, std::int64_t count, bool accumulate) {
    return accumulate ? normal(name, type, count) : output(name, type, count);
  }

  /// Runs `action` before the case, on the oracle.
  CaseBuilder& prepare(const program::Action& action) {
    case_.prepare.push_back({action, 0, {}, -1, {}});
    return *this;
  }
  /// Runs the case on this rank of `shards` tensor-parallel ones.
  CaseBuilder& shard(int rank, int shards) {
    case_.layout = program::Layout{{program::Axis::tensor, shards}};
    case_.rank = rank;
    return *this;
  }
  CaseBuilder& attention(config::AttentionKind kind) {
    case_.settings.attention = kind;
    return *this;
  }
  /// The precision of products of 8-bit floats, in a case that otherwise uses bf16.
  CaseBuilder& precision(config::Precision of_products) {
    case_.settings.precision = of_products;
    return *this;
  }
  OperationCase take(const program::Action& action, const std::string& name);

 private:
  program::View add(const std::string& name, program::DType type, std::int64_t count, const Filling& filling);
  program::DType type_;
  OperationCase case_;
};

using Cases = std::vector<OperationCase>;
/// Adds the case of the action that make(builder) returns.
template <class Make>
void add_case(Cases& cases, CaseBuilder builder, const std::string& name, const Make& make) {
  cases.push_back(builder.take(make(builder), name));
}
void add_elementwise_cases(Cases& cases, program::DType type);
void add_embedding_cases(Cases& cases, program::DType type);
void add_norm_cases(Cases& cases, program::DType type);
void add_product_cases(Cases& cases, program::DType type, bool tf32);
void add_quantise_cases(Cases& cases, program::DType type);
void add_fp8_product_cases(Cases& cases, config::Precision precision);
void add_attention_cases(Cases& cases, program::DType type, bool tf32);
void add_rope_cases(Cases& cases, program::DType type);
void add_loss_cases(Cases& cases, program::DType type);
void add_optimizer_cases(Cases& cases, program::DType weights);
void add_loss_scaling_cases(Cases& cases);
void add_compression_cases(Cases& cases);

}  // namespace harness::selftest
