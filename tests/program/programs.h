#pragma once

// Programs that no workload builds yet, written to see that the operation list can say them: ring attention,
// interleaved 1F1B, per-layer parameter gathering with prefetch.

#include "program/program.h"

namespace harness::test {

/// Ring attention (Liu et al. 2023) forward over the context axis: each rank keeps its queries and passes keys and
/// values around the ring, the next ones travelling while the present ones are used.
program::ProgramSet ring_attention(int context);

/// Interleaved 1F1B (Narayanan et al. 2021): `chunks` model chunks per stage, activations wrap from the last stage to
/// the first. One matrix product stands for a chunk. micro_batches: a multiple of stages, at least twice as many.
program::ProgramSet interleaved(int stages, int chunks, int micro_batches);

/// Parameters sharded over the data axis: a layer's are gathered one layer ahead into one of two buffers, its gradient
/// is reduce-scattered behind the next layer's backward pass.
program::ProgramSet gathered_parameters(int data, int layers);

}  // namespace harness::test
