#pragma once

#include <cstdint>
#include <vector>

namespace harness::gpt {

/// One pass of a micro-batch through the layers of one model chunk of a pipeline stage.
struct Pass {
  enum class Direction : std::uint8_t { forward, backward };
  Direction direction = Direction::forward;
  int micro_batch = 0;
  int chunk = 0;       // of the stage
  bool first = false;  // of the backward passes of its chunk in a step: replaces the gradients, to which the others add
  bool last = false;   // of them: leaves final gradients
  bool operator==(const Pass&) const = default;
};

/// The passes of a stage in the order in which it runs them: one forward, one backward (1F1B, PipeDream-flush;
/// Narayanan et al. 2021, section 2.2). Stage p of P runs P - p - 1 forward passes ahead, then alternates, so at most
/// P - p micro-batches are in flight. With one stage this is plain gradient accumulation. Backward passes follow the
/// order of the forward passes.
std::vector<Pass> one_forward_one_backward(int stage, int stages, int micro_batches);

}  // namespace harness::gpt
