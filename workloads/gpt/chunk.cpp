#include "workloads/gpt/chunk.h"

#include <algorithm>

namespace harness::gpt {

std::vector<Chunk> chunks_of(const config::Model& model, const program::Layout& layout, int stage, int chunks) {
  const int stages = layout[program::Axis::pipeline], runs = stages * chunks;
  const int layers = static_cast<int>(model.layers), each = layers / runs, longer = layers % runs;
  std::vector<Chunk> list;
  for (int run = stage; run < runs; run += stages) {
    list.push_back({.first_layer = run * each + std::min(run, longer),
                    .layers = each + (run < longer ? 1 : 0),
                    .first = run == 0,
                    .last = run + 1 == runs,
                    .saved = {}});
  }
  return list;
}

}  // namespace harness::gpt
