#include "workloads/gpt/stage.h"

namespace harness::gpt {

// Memory follows from this alone: what no backward pass reads is given back after its last forward use.
LayerActivations Stage::kept(const LayerActivations& a, const Chunk& chunk) const {
  LayerActivations some = a;
  if (d_.recompute == config::Recompute::selective) some.probabilities = {};
  const bool again = d_.recompute_layers == 0 || at_.layer - chunk.first_layer < d_.recompute_layers;
  if (d_.recompute != config::Recompute::full || !again) return some;
  // The stream as the first norm summed it up, not what it was summed from: with tensor parallelism a layer's input is
  // a sum still to be made, of two tensors and a bias.
  some = {};
  some.norm1.sum = a.norm1.sum;
  return some;
}

LayerActivations Stage::restored(const LayerActivations& kept) {
  LayerActivations a = kept;
  at_.recomputed = true;
  if (!kept.norm1.out.present()) {
    // The whole layer is run once more, with fc2 and its sum over ranks, whose result nobody reads: so do the
    // frameworks, which call the layer's forward function, and so counts the formula of 96 instead of 72
    // (docs/method.md).
    layer_forward(a, {kept.norm1.sum});
  } else if (d_.attention == config::AttentionKind::unfused && !kept.probabilities.present()) {
    LayerActivations again;
    again.qkv = kept.qkv;
    attention(again);
    a.probabilities = again.probabilities;
  }
  at_.recomputed = false;
  return a;
}

}  // namespace harness::gpt
