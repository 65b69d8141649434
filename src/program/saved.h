#pragma once

#include <compare>
#include <cstdint>
#include <map>

#include "program/program.h"

namespace harness::program {

/// Whose forward pass: as its operations are labelled.
struct ForwardPass {
  std::int32_t micro_batch = -1, layer = -1;
  auto operator<=>(const ForwardPass&) const = default;  // NOLINT(modernize-use-nullptr): 14 misreads it
};

/// The bytes that each forward pass of a step keeps for backward passes: of the transient buffers that it writes first
/// and that a backward pass reads. What is computed again for the backward pass is no part of them, nor is what shares
/// the memory at its peak, such as gradients.
std::map<ForwardPass, std::int64_t> saved_bytes(const Program& program);

}  // namespace harness::program
