#include "workloads/gpt/stage.h"

namespace harness::gpt {

// Memory follows from this alone: what no backward pass reads is given back after its last forward use.
LayerActivations Stage::kept(const LayerActivations& a, const Chunk& chunk) const {
  const bool again = d_.recompute_layers == 0 || at_.layer - chunk.first_layer < d_.recompute_layers;
  if (d_.recompute != config::Recompute::full || !again) return a;
  // The stream as the first norm summed it up, not what it was summed from: with tensor parallelism a layer's input is
  // a sum still to be made, of two tensors and a bias.
  LayerActivations checkpoint;
  checkpoint.norm1.sum = a.norm1.sum;
  return checkpoint;
}

// The whole layer is run once more, with fc2 and its sum over ranks, whose result nobody reads: so do the frameworks,
// which call the layer's forward function, and so counts the formula of 96 instead of 72 (docs/method.md).
LayerActivations Stage::restored(const LayerActivations& kept) {
  if (kept.norm1.out.present()) return kept;
  LayerActivations a;
  at_.recomputed = true;
  layer_forward(a, {kept.norm1.sum});
  at_.recomputed = false;
  return a;
}

}  // namespace harness::gpt
