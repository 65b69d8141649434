#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "program/program.h"

namespace harness::program {

/// The forward pass of a layer and micro-batch, as its operations are labelled.
struct ForwardPass {
  std::int32_t micro_batch = -1, layer = -1;
  auto operator<=>(const ForwardPass&) const = default;  // NOLINT(modernize-use-nullptr): 14 misreads it
};

// Gathered weights belong to no pass, whichever pass reads them.
inline bool gathers_weights(const Program& program, const Operation& op) {
  const auto* gather = std::get_if<AllGather>(&op.action);
  return gather != nullptr && program.buffer_of(gather->in).kind == BufferKind::persistent;
}

/// The bytes that each forward pass of a step keeps for backward passes: of the transient buffers that it writes first
/// and that a backward pass reads. What is computed again for the backward pass is no part of them, nor is what shares
/// the memory at its peak, such as gradients.
inline std::map<ForwardPass, std::int64_t> saved_bytes(const Program& program) {
  std::vector<const Label*> writer(program.buffers.size(), nullptr);  // the first
  std::vector<char> counted(program.buffers.size(), 0), of_weights(program.buffers.size(), 0);
  std::map<ForwardPass, std::int64_t> bytes;
  for (const Operation& op : program.step) {
    visit_accesses(op.action, [&](Access access, const View& view) {
      const std::size_t b = view.buffer;
      const Label* first = writer[b];
      if (access != Access::read && first == nullptr) {
        writer[b] = &op.label;
        of_weights[b] = gathers_weights(program, op) ? 1 : 0;
      }
      const bool kept = of_weights[b] == 0 && access != Access::write && op.label.phase == Phase::backward &&
                        first != nullptr && first->phase == Phase::forward && !first->recomputed;
      if (!kept || counted[b] != 0 || program.buffers[b].kind != BufferKind::transient) return;
      counted[b] = 1;
      bytes[{first->micro_batch, first->layer}] += program.buffers[b].bytes();
    });
  }
  return bytes;
}

}  // namespace harness::program
