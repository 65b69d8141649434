#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "config/settings.h"
#include "program/layout.h"
#include "program/view.h"

namespace harness::gpt {

/// A normalised stream and what the backward pass of the norm needs; `sum` is the stream that was normalised.
struct Normalised {
  program::View sum, out, mean, rstd;  // no mean where the norm takes none off
};

/// Activations of one layer that its backward pass needs.
struct LayerActivations {
  Normalised norm1, norm2;
  program::View qkv, attention, stats;  // queries and keys of qkv turned, where positions are rotary
  program::View fc1, activated;         // fc1's output, and what the activation made of it
  program::View probabilities;          // of unfused attention
};

/// Activations of one micro-batch that its backward pass through a chunk needs.
struct MicroBatch {
  std::vector<LayerActivations> layers;
  Normalised final_norm;
  program::View logits;  // hold their gradient after the loss
};

/// Layers of the model that follow one another, which a stage runs in one pass.
struct Chunk {
  int first_layer = 0, layers = 0;
  bool first = false;               // begins the model: with the embedding
  bool last = false;                // ends it: with the final norm, the head and the loss
  std::map<int, MicroBatch> saved;  // by number of the micro-batch
  int end() const { return first_layer + layers; }
};

/// The chunks of a stage, in the order of the model. The model is cut into stages * chunks runs of layers, which go to
/// the stages in turn; where they cannot be equally long, the first ones have a layer more. Where embedding and loss
/// count as a layer, the first and the last run have one less, and may have none.
inline std::vector<Chunk> chunks_of(const config::Model& model, const config::Settings& settings,
                                    const program::Layout& layout, int stage) {
  const int stages = layout[program::Axis::pipeline], runs = stages * settings.chunks_of_stage();
  const int outside = settings.embedding_as_layer && runs > 1 ? 1 : 0;
  const int layers = static_cast<int>(model.layers) + 2 * outside, each = layers / runs, longer = layers % runs;
  std::vector<Chunk> list;
  for (int run = stage; run < runs; run += stages) {
    const int less = (run == 0 ? outside : 0) + (run + 1 == runs ? outside : 0);
    list.push_back({.first_layer = std::max(0, run * each + std::min(run, longer) - outside),
                    .layers = each + (run < longer ? 1 : 0) - less,
                    .first = run == 0,
                    .last = run + 1 == runs,
                    .saved = {}});
  }
  return list;
}

}  // namespace harness::gpt
