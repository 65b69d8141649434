#include "workloads/gpt/gathers.h"

#include <algorithm>

#include "base/text.h"

namespace harness::gpt {

Gathers::Gathers(ProgramBuilder& builder, Parameters& parameters, const Settings& settings,
                 const std::vector<Chunk>& chunks, const std::vector<TimedPass>& passes)
    : b_(builder),
      parameters_(parameters),
      overlap_(settings.overlap_param_gather),
      ahead_(static_cast<std::size_t>(settings.prefetch_layers)) {
  if (parameters_.whole_weights()) return;
  list_uses(chunks, passes);
  std::int64_t largest = 0;
  for (const Parameter& p : parameters_.list()) {
    if (p.id.layer >= 0) largest = std::max(largest, parameters_.buckets()[p.bucket].count);
  }
  for (std::size_t i = 0; i <= ahead_; ++i) {
    // Persistent places: the next weights in a place wait for the readers of the previous ones.
    room_.push_back(b_.buffer("layer_weights", parameters_.weight_type(), largest, BufferKind::persistent));
  }
}

void Gathers::list_uses(const std::vector<Chunk>& chunks, const std::vector<TimedPass>& passes) {
  const bool untied = parameters_.has({head_weight});
  const int table = parameters_.at({word_embeddings}).bucket, norm = parameters_.at({final_norm_gamma}).bucket,
            head = untied ? parameters_.at({head_weight}).bucket : table;
  const Chunk& model = chunks.front();
  const auto bucket_of = [&](int layer) { return parameters_.at({norm1_gamma, layer}).bucket; };
  const Pass* before = nullptr;
  for (const TimedPass& timed : passes) {
    const Pass& pass = timed.pass;
    const auto add = [&](int bucket, int layer, bool gathers) {
      uses_.push_back({bucket, {"weights", pass.phase, pass.micro_batch, layer}, gathers});
    };
    if (pass.forward()) {
      add(table, -1, true);
      for (int layer = model.first_layer; layer < model.end(); ++layer) add(bucket_of(layer), layer, true);
      add(norm, -1, true);
      add(head, -1, head != norm);
    } else {
      const bool there = before != nullptr && before->forward() && before->micro_batch == pass.micro_batch;
      add(head, -1, !there);
      add(norm, -1, !there && head != norm);
      for (int layer = model.end() - 1; layer >= model.first_layer; --layer) {
        add(bucket_of(layer), layer, !there || layer + 1 < model.end());
      }
    }
    before = &pass;
  }
}

// Buckets are numbered from the end. The previous step has ended on all ranks, so the gathers wait for nothing else.
std::vector<OperationId> Gathers::begin_step() {
  if (parameters_.shards() == 1 || !parameters_.whole_weights()) return {};
  for (int bucket = static_cast<int>(parameters_.buckets().size()); bucket-- > 0;) {
    b_.emit(gather_stream,
            program::AllGather{gather_group, parameters_.own_weights(bucket), parameters_.weights_of(bucket)},
            {"weight bucket", Phase::forward, -1, bucket});
  }
  if (overlap_) return {};
  return {b_.last(gather_stream)};
}

// Weights gathered ahead take the room of a layer already used, never that of one in use or still to be used: there is
// one place more than layers are gathered ahead.
void Gathers::use(int bucket) {
  if (uses_.empty()) return;
  if (used_ >= uses_.size() || uses_[used_].bucket != bucket) fail("weights are used in another order than planned");
  std::size_t ahead = 0;  // gathering uses ahead of this one
  for (std::size_t i = used_ + 1; i < gathered_.size(); ++i) ahead += uses_[i].gathers ? 1 : 0;
  for (std::size_t i = gathered_.size(); i < uses_.size(); ++i) {
    if (i > used_ && uses_[i].gathers && ++ahead > ahead_) break;
    const Use& next = uses_[i];
    View& all = latest_[next.bucket];
    if (next.gathers) {
      const std::int64_t count = parameters_.buckets()[next.bucket].count;
      all = next.label.layer >= 0 ? room_[layers_++ % room_.size()].part(0, count)
                                  : b_.buffer("weights_of_ends", parameters_.weight_type(), count);
      b_.emit(gather_stream, program::AllGather{gather_group, parameters_.own_weights(next.bucket), all}, next.label);
    }
    gathered_.push_back(all);
  }
  parameters_.set_gathered(bucket, gathered_[used_]);
  ++used_;
}

}  // namespace harness::gpt
