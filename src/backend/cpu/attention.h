#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/bound.h"

namespace harness::cpu {

/// Causal or full attention and its gradient, in blocks of query rows: a block multiplies only with the keys that its
/// last row sees, so that a causal attention costs little more than half of the square. Scores of one block live in the
/// cache and are never written to memory (cf. Dao et al. 2022, "FlashAttention"; here a block sees all of its keys at
/// once, which fits at training lengths and needs no rescaling). Heads are handled several at a time. Where the
/// operation keeps its probabilities, they are written to memory, and the products read them from there. Where a
/// sequence holds several documents, a block begins at the block of keys where its first row's document does.
///
/// One object serves all operations of its shape and type on one rank: threads work on different (sequence, heads of
/// keys) units, each with its own products and scratch. Where a group of query heads shares a head of keys, its members
/// follow one another on one thread, which sums up what they give to the gradients of keys and values. Allocates
/// nothing when run.
class AttentionKernel {
 public:
  /// These decide which memory the products of an operation read.
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

  program::AttentionShape shape_;
  program::DType type_;
  bool has_documents_;
  std::int64_t block_rows_ = 0, blocks_ = 0;
  std::int64_t heads_together_ = 1;
  float scale_ = 1;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace harness::cpu
