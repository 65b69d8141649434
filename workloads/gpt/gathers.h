#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "workloads/gpt/parameters.h"
#include "workloads/gpt/schedule.h"

namespace harness::gpt {

/// Gathers the weights of which each replica has updated a part.
///
/// If every rank has room for all weights, the step begins by gathering them, bucket by bucket in the order of use.
/// With overlap_param_gather a layer waits for its own buckets, without for all.
///
/// With sharding `parameters` (ZeRO stage 3, Rajbhandari et al. 2020; PyTorch's FSDP) a rank has room for the weights
/// of prefetch_layers + 1 layers. They are gathered for each pass, as far ahead of their use as there is room. The
/// weights that a forward pass uses last stay for the backward pass that follows; those of the embeddings are gathered
/// at both ends of a forward pass.
class Gathers {
 public:
  /// passes: of the only stage, if weights are gathered for each pass. Construct before the step begins.
  Gathers(ProgramBuilder& builder, Parameters& parameters, const Settings& settings, const std::vector<Chunk>& chunks,
          const std::vector<TimedPass>& passes);

  /// Call first in a step. Returns what all layers wait for.
  std::vector<OperationId> begin_step();
  /// Operations emitted from now on read the weights of this bucket. Calls follow the order of the passes: forward the
  /// embedding, each layer, the final norm and the head; backward the reverse, without the embedding.
  void use(int bucket);

 private:
  struct Use {
    int bucket = 0;
    Label label = {};
    bool gathers = true;  // else it reuses what this bucket's previous use gathered
  };
  void list_uses(const std::vector<Chunk>& chunks, const std::vector<TimedPass>& passes);

  ProgramBuilder& b_;
  Parameters& parameters_;
  bool overlap_;
  std::size_t ahead_;
  std::vector<Use> uses_;       // empty: every rank has room for all weights
  std::vector<View> room_;      // one place per layer, used in turn
  std::vector<View> gathered_;  // by use, as far as it is emitted
  std::map<int, View> latest_;  // by bucket: what was gathered last
  std::size_t used_ = 0;        // uses so far
  std::size_t layers_ = 0;      // gathered ones
};

}  // namespace harness::gpt
