#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/bound.h"

namespace harness::cpu {

/// Causal or full attention and its gradient, in blocks of query rows. A block multiplies only with the keys that its
/// last row sees, so causal attention costs little more than half of full attention. The scores of a block stay in the
/// cache and are never written to memory (cf. Dao et al. 2022, "FlashAttention"; here a block sees all of its keys at
/// once, which fits at training lengths and needs no rescaling). Several heads are computed together. If the operation
/// keeps its probabilities, they are written to memory, and the products read them from there. If a sequence packs
/// several documents, a block starts at the key block in which its first row's document begins.
///
/// One object serves all operations of its shape and type on one rank. Threads work on different (sequence, KV heads)
/// units, each with its own products and scratch. Query heads that share a KV head (grouped-query attention) run one
/// after another on one thread, which sums their contributions to dk and dv. Allocates nothing when run.
class AttentionKernel {
 public:
  /// The parameters that determine the products and the memory that they read.
  struct Form {
    program::AttentionShape shape;
    program::DType type;
    bool backward, keeps_probabilities, has_documents;
    auto operator<=>(const Form&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
  };
  AttentionKernel(const Form& form, int threads);
  ~AttentionKernel();

  void forward(const backend::Bound<program::Attention>& t);
  void backward(const backend::Bound<program::AttentionBackward>& t);

 private:
  struct Block;
  struct Unit;
  struct Worker;
  struct Seen;
  Block& block_of(Worker& w, std::int64_t number, const std::int32_t* position_ids) const;
  Seen seen_by(const Block& block, std::int64_t row, const std::int32_t* position_ids) const;
  const std::int32_t* ids_of(const backend::Tensor& position_ids, const Unit& unit) const;
  template <class T>
  void forward_unit(Worker& w, const Unit& unit, const backend::Bound<program::Attention>& t) const;
  template <class T>
  void backward_unit(Worker& w, const Unit& unit, const backend::Bound<program::AttentionBackward>& t) const;
  template <class F>
  void over_units(F&& f);
  template <class T>
  struct Scores;  // where a block's are
  template <class T>
  Scores<T> probabilities(Worker& w, const Block& block, const backend::Tensor& kept, const Unit& unit) const;

  Form form_;
  std::int64_t block_rows_ = 0, blocks_ = 0;
  std::int64_t heads_together_ = 1;
  float scale_ = 1;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace harness::cpu
