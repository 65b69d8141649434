#pragma once

#include <string>
#include <vector>

#include "config/settings.h"
#include "program/program.h"

namespace harness::selftest {

/// How a buffer is filled before the operation runs.
struct Filling {
  enum class Kind : std::uint8_t {
    poison,   // NaN: nobody may read it, and what is to be written must not keep it
    normal,   // mean + deviation * a normal number
    uniform,  // i32: 0 .. limit - 1
  };
  Kind kind = Kind::poison;
  double mean = 0, deviation = 1;
  std::int64_t limit = 0;
};

/// One buffer of a case: `view` is what operations may use of it. Around it lies poison that must stay.
struct CaseBuffer {
  program::View view;
  Filling filling;
};

/// One operation on buffers of its own, to be run on two backends.
struct OperationCase {
  std::string operation;     // name_of(action)
  std::string name;          // what is special: "17 x 33, bf16, bias"
  program::Program program;  // no init; the step is the operation; not lowered
  std::vector<program::Operation>
      prepare;  // run before by the oracle alone: inputs that must fit others, such as a row's mean
  std::vector<CaseBuffer> buffers;
  program::Layout layout;  // of which `rank` runs it; the operation itself never communicates
  int rank = 0;
  config::Settings settings;
  double tolerance = 0;  // relative, of the largest difference and of the norm
  bool large = false;    // real sizes: seconds on a CPU

  std::string precision() const;  // "bf16", "fp32", "tf32"
};

/// Every compute operation: odd widths, optional views present and absent, accumulating and not, f32 and bf16, shards,
/// both kinds of attention, and all forms of matrix products that the GPT step has. `tf32`: products of f32 on tensor
/// cores besides, which only GPUs have.
std::vector<OperationCase> operation_cases(bool tf32);

/// The numbers a buffer of a case holds before the operation, guards included. They depend on the seed and the buffer's
/// name alone, not on the number of threads.
std::vector<std::byte> initial_bytes(const OperationCase& test_case, std::size_t buffer, std::uint64_t seed,
                                     int threads = 1);
/// The bits of poison: a NaN that no arithmetic makes.
inline constexpr std::uint16_t poison_bf16 = 0x7fd5;
inline constexpr std::uint32_t poison_f32 = 0x7fd5a5c3;  // of i32 buffers too

}  // namespace harness::selftest
