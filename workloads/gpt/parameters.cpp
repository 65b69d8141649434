#include "workloads/gpt/gpt.h"

namespace harness::gpt {
namespace {

// Elements to which every parameter's place in the flat buffers is rounded up: 64 bytes of bf16, enough for any vector
// load and for cuBLAS. With the usual model widths nothing is lost to it.
constexpr std::int64_t parameter_alignment = 32;

class ParameterList {
 public:
  explicit ParameterList(int tensor) : tensor_(tensor) {}

  void skip(std::int64_t elements) { global_ += elements; }
  std::int64_t global() const { return global_; }

  void replicated(std::string name, std::int64_t n) { add(std::move(name), 1, n, n, 1, false); }
  void sharded(std::string name, std::int64_t outer, std::int64_t full, std::int64_t inner) {
    add(std::move(name), outer, full, full / tensor_, inner, true);
  }
  /// A second copy of a parameter whose global numbers start at `first`.
  void copy_of(std::int64_t first, std::string name, std::int64_t outer, std::int64_t full, std::int64_t inner) {
    const std::int64_t keep = global_;
    global_ = first;
    sharded(std::move(name), outer, full, inner);
    global_ = keep;
  }

  std::vector<Parameter> take() { return std::move(list_); }

 private:
  void add(std::string name, std::int64_t outer, std::int64_t full, std::int64_t part, std::int64_t inner,
           bool sharded) {
    const std::int64_t count = outer * part * inner;
    list_.push_back({std::move(name), {0, flat_, count}, global_, outer, full, part, inner, sharded});
    flat_ += (count + parameter_alignment - 1) / parameter_alignment * parameter_alignment;
    global_ += outer * full * inner;
  }

  int tensor_;
  std::int64_t flat_ = 0, global_ = 0;
  std::vector<Parameter> list_;
};

std::int64_t layer_elements(const config::Model& m) {
  const std::int64_t h = m.hidden, f = m.ffn();
  return 2 * h + (3 * h * h + 3 * h) + (h * h + h) + 2 * h + (f * h + f) + (f * h + h);
}

void add_layer(ParameterList& list, const config::Model& m, std::int64_t layer) {
  const std::int64_t h = m.hidden, f = m.ffn();
  const std::string prefix = "layers." + std::to_string(layer) + ".";
  list.replicated(prefix + "norm1.gamma", h);
  list.replicated(prefix + "norm1.beta", h);
  list.sharded(prefix + "qkv.weight", 3, h, h);  // [q, k, v][heads * head_dim][hidden], split by heads
  list.sharded(prefix + "qkv.bias", 3, h, 1);
  list.sharded(prefix + "projection.weight", h, h, 1);  // [hidden][heads * head_dim], split by its input
  list.replicated(prefix + "projection.bias", h);
  list.replicated(prefix + "norm2.gamma", h);
  list.replicated(prefix + "norm2.beta", h);
  list.sharded(prefix + "fc1.weight", 1, f, h);
  list.sharded(prefix + "fc1.bias", 1, f, 1);
  list.sharded(prefix + "fc2.weight", h, f, 1);
  list.replicated(prefix + "fc2.bias", h);
}

}  // namespace

std::vector<Parameter> parameters(const config::Model& m, const program::Layout& layout, int stage) {
  const int stages = layout[program::Axis::pipeline];
  const std::int64_t per_stage = m.layers / stages;
  const std::int64_t word_elements = m.vocab * m.hidden, position_elements = m.sequence * m.hidden;
  ParameterList list(layout[program::Axis::tensor]);
  if (stage == 0) {
    list.sharded("word_embeddings", 1, m.vocab, m.hidden);
    list.replicated("position_embeddings", position_elements);
  } else {
    list.skip(word_elements + position_elements);
  }
  list.skip(stage * per_stage * layer_elements(m));
  for (std::int64_t l = stage * per_stage; l < (stage + 1) * per_stage; ++l) add_layer(list, m, l);
  if (stage == stages - 1) {
    list.replicated("final_norm.gamma", m.hidden);
    list.replicated("final_norm.beta", m.hidden);
    // The tied table's copy stands last: its gradient is the first to be complete in the backward pass.
    if (stages > 1) list.copy_of(0, "word_embeddings", 1, m.vocab, m.hidden);
  }
  return list.take();
}

}  // namespace harness::gpt
