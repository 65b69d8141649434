#pragma once

// The FLOP, messages and memory of a training step in closed form: each formula once, for every model, layout and lever
// in the tests.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "gpt_jobs.h"
#include "workloads/gpt/schedule.h"

namespace harness::workloads::closed {

using program::Axis;

inline std::int64_t micro_batches(const Job& j) {
  return j.settings.global_batch_size / j.settings.micro_batch_size / j.layout[Axis::data];
}

inline double tokens(const Job& j) {
  return static_cast<double>(j.settings.global_batch_size * j.model.sequence);
}

/// Forward FLOP per token of a layer, 2 h (2 h + 2 k + g f + s), with half of the attention square (causal), or all of
/// it with `square` 2. With g f = 8 h and k = h it is the 24 h^2 (1 + s / 12 h) of Narayanan et al. 2021, equation 3.
inline double forward_of_layer(const config::Model& model, double square = 1) {
  const config::Model m = model.resolved();
  const auto h = static_cast<double>(m.hidden), k = static_cast<double>(m.key_width());
  const double g = m.activation == config::Activation::swiglu ? 3 : 2;
  return 2 * h * (2 * h + 2 * k + g * static_cast<double>(m.ffn) + square * static_cast<double>(m.sequence));
}

/// The backward pass has twice the FLOP of the forward pass.
inline double flop(const Job& j, double square = 1) {
  const config::Model& m = j.model;
  const double head = 2 * static_cast<double>(m.vocab) * static_cast<double>(m.hidden);
  return 3 * tokens(j) * (static_cast<double>(m.layers) * forward_of_layer(m, square) + head);
}

/// Layers that a chunk recomputes.
inline std::int64_t recomputed_layers(const Job& j, const gpt::Chunk& chunk) {
  if (j.settings.recompute != config::Recompute::full) return 0;
  return j.settings.recompute_layers == 0 ? chunk.layers : std::min(j.settings.recompute_layers, chunk.layers);
}

/// `recompute: full` repeats the forward pass of a layer, `selective` the two products of unfused attention.
inline double recomputed_flop(const Job& j) {
  const config::Settings& s = j.settings;
  if (s.recompute == config::Recompute::selective && s.attention == config::AttentionKind::unfused) {
    const auto h = static_cast<double>(j.model.hidden), seq = static_cast<double>(j.model.sequence);
    return tokens(j) * static_cast<double>(j.model.layers) * 2 * h * seq;
  }
  std::int64_t layers = 0;
  for (int stage = 0; stage < j.layout[Axis::pipeline]; ++stage) {
    for (const gpt::Chunk& c : gpt::chunks_of(j.model, s, j.layout, stage)) layers += recomputed_layers(j, c);
  }
  return tokens(j) * static_cast<double>(layers) * forward_of_layer(j.model);
}

/// Number of messages and bytes as in nccl-tests, by destination and kind.
using Traffic = std::map<std::pair<std::string, std::string>, std::pair<std::int64_t, double>>;

/// Messages among tensor ranks. Shoeybi et al. 2019: all-reduces of b s h, two forward and two backward for each layer,
/// one for the embedding, one for the head's input gradient; three of b s scalars for the loss. Korthikanti et al.
/// 2022, section 4.2.2: with sequence parallelism, a reduce-scatter and an all-gather replace each of the first; a
/// product gathers its input once more for its weight gradient; and the gradients of vectors that all ranks hold are
/// all-reduced once per gradient reduction, with a message for each layer and bucket that has some.
inline void add_tensor(const Job& j, int stage, std::int64_t reductions, Traffic& traffic) {
  const config::Settings& s = j.settings;
  const std::int64_t m = micro_batches(j), rows = s.micro_batch_size * j.model.sequence,
                     stream = rows * j.model.hidden * program::size_of(config::storage_of(s.precision));
  const int first = stage == 0 ? 1 : 0, last = stage + 1 == j.layout[Axis::pipeline] ? 1 : 0;
  std::int64_t layers = 0, again = 0;
  for (const gpt::Chunk& c : gpt::chunks_of(j.model, s, j.layout, stage)) {
    layers += c.layers;
    again += recomputed_layers(j, c);
  }
  const std::int64_t sums = m * (4 * layers + 2 * again + first + last), loss = 3 * m * last;
  const auto loss_bytes = static_cast<double>(loss * rows * 4);
  if (!s.sequence_parallel) {
    traffic[{"tensor", "all_reduce"}] = {sums + loss, static_cast<double>(sums * stream) + loss_bytes};
    return;
  }
  const std::int64_t gathers = m * (6 * layers + 2 * again + first + 2 * last);
  traffic[{"tensor", "reduce_scatter"}] = {sums, static_cast<double>(sums * stream)};
  traffic[{"tensor", "all_gather"}] = {gathers, static_cast<double>(gathers * stream)};
  std::map<std::pair<int, int>, std::int64_t> vectors;  // by layer and bucket
  std::int64_t elements = 0;
  for (const gpt::Parameter& p : gpt::parameters(j.model, s, j.layout, stage)) {
    if (!p.partial) continue;
    vectors[{p.id.layer, p.bucket}] += p.count();
    elements += p.count();
  }
  traffic[{"tensor", "all_reduce"}] = {loss + reductions * std::ssize(vectors),
                                       loss_bytes + 4 * static_cast<double>(reductions * elements)};
}

/// ZeRO (Rajbhandari et al. 2020). Gradients are reduced once a step, or, if no rank keeps them all, once a
/// micro-batch; a message for each bucket. Stages 1 and 2 gather the weights once a step. Stage 3 gathers them forward
/// and backward in every micro-batch, but not backward the last layer and what the head reads, which are present; a
/// tied table at both ends of a forward pass. A share of compressed gradients, rounded up in each bucket, is gathered
/// with its indices; gradients of parameters that tensor ranks do not divide are all-reduced whole.
inline void add_replicas(const Job& j, int stage, std::int64_t reductions, Traffic& traffic) {
  const config::Settings& s = j.settings;
  const Elements n = elements_of(j, stage);
  const std::int64_t shards = gpt::shards_of(s, j.layout), wire = program::size_of(s.grad_reduce_type),
                     type = program::size_of(config::storage_of(s.precision)), m = micro_batches(j);
  const auto bytes = static_cast<double>(reductions * wire * n.flat);
  if (s.grad_compression != config::GradCompression::none) {
    std::set<int> compressed, reduced;
    std::int64_t sent = 0, whole = 0;
    for (const gpt::Parameter& p : gpt::parameters(j.model, s, j.layout, stage)) {
      const bool divided = p.sharded || j.layout[Axis::tensor] == 1;
      (divided ? compressed : reduced).insert(p.bucket);
      whole += divided ? 0 : p.count();
    }
    for (const int bucket : compressed) {
      const auto all = static_cast<double>(elements_of_bucket(j, bucket, stage));
      sent += std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(s.grad_compression_ratio * all)));
    }
    traffic[{"data", "all_gather"}] = {2 * std::ssize(compressed),
                                       static_cast<double>(8 * sent * j.layout[Axis::data])};
    if (whole > 0) traffic[{"data", "all_reduce"}] = {std::ssize(reduced), static_cast<double>(4 * whole)};
    return;
  }
  if (shards == 1) {
    traffic[{"data", "all_reduce"}] = {n.buckets, bytes};
    return;
  }
  traffic[{"data", "reduce_scatter"}] = {reductions * n.buckets, bytes};
  if (gpt::shards_are_of_node(s, j.layout))
    traffic[{"nodes", "all_reduce"}] = {reductions * n.buckets, bytes / static_cast<double>(shards)};
  traffic[{"gather", "all_gather"}] = {n.buckets, static_cast<double>(type * n.flat)};
  if (s.sharding != config::Sharding::parameters) return;
  const bool tied = j.model.tied_embeddings;
  const std::int64_t table = tied ? 0 : elements_of_bucket(j, static_cast<int>(n.buckets) - 1);
  traffic[{"gather", "all_gather"}] = {
      m * (2 * n.buckets - (tied ? 2 : 3)),
      static_cast<double>(m * type * (2 * n.flat - elements_of_bucket(j, 1) - elements_of_bucket(j, 0) - table))};
}

/// Returns every message in a step of one rank of this stage.
inline Traffic traffic(const Job& j, int stage) {
  const config::Settings& s = j.settings;
  const int stages = j.layout[Axis::pipeline], tensor = j.layout[Axis::tensor];
  const std::int64_t m = micro_batches(j), chunks = s.chunks_of_stage(), shards = gpt::shards_of(s, j.layout);
  const std::int64_t reductions = shards > 1 && s.sharding > config::Sharding::optimizer ? m : 1;
  const bool first = stage == 0, last = stage + 1 == stages;
  Traffic all;
  all[{"world", "all_reduce"}] = {1, 4};  // the loss
  if (tensor > 1) add_tensor(j, stage, reductions, all);
  if (j.layout[Axis::data] > 1) add_replicas(j, stage, reductions, all);
  if (stages == 1) return all;
  // Every chunk border is crossed once in each direction.
  const std::int64_t border = s.micro_batch_size * j.model.sequence * j.model.hidden *
                              program::size_of(config::storage_of(s.precision)) / (s.sequence_parallel ? tensor : 1);
  const auto across = [&](const char* to, std::int64_t messages) {
    if (messages == 0) return;
    for (const char* kind : {"send", "receive"}) all[{to, kind}] = {messages, static_cast<double>(messages * border)};
  };
  across("pipeline+1", m * chunks - (last ? m : 0));
  across("pipeline-1", m * chunks - (first ? m : 0));
  if (j.model.tied_embeddings && (first || last)) {
    const std::int64_t table = j.model.vocab * j.model.hidden / tensor / shards;
    all[{"embedding", "all_reduce"}] = {1, static_cast<double>(4 * table)};
  }
  return all;
}

/// Bytes of weights, gradients and optimizer state of n parameters that d ranks share: bf16 2 + 4 + 12, fp32 4 + 4 + 8
/// each (there the weight is its own master). ZeRO stage 1 divides the last, stage 2 the last two and stage 3 all. The
/// residual of compressed gradients takes another 4.
inline std::int64_t model_bytes(const Job& j, int stage) {
  const std::int64_t n = elements_of(j, stage).flat, d = gpt::shards_of(j.settings, j.layout),
                     weight = program::size_of(config::storage_of(j.settings.precision)), state = weight == 2 ? 12 : 8;
  const auto sharding = static_cast<int>(j.settings.sharding);
  const bool residual = j.settings.grad_compression != config::GradCompression::none && j.layout[Axis::data] > 1;
  return (residual ? n * 4 : 0) + n * weight / (sharding >= 3 ? d : 1) + n * 4 / (sharding >= 2 ? d : 1) +
         n * state / (sharding >= 1 ? d : 1);
}

/// Bytes that a layer in the middle of a stage keeps of a micro-batch, in bf16. Korthikanti et al. 2022, section 4.2.1:
/// with t tensor ranks s b h (10 + 24 / t) bytes, or with sequence parallelism 34 s b h / t, if attention keeps no
/// scores; 2 of 10 and of 34 are dropout masks, which these models lack. The small terms that they neglect are
/// included: mean and deviation of each row for two norms, and for attention a number per row and head of this rank.
/// Unfused attention keeps b a s^2 more numbers. Full recomputation keeps the layer's input, 2 s b h.
inline std::int64_t kept_of_layer(const Job& j) {
  const config::Settings& s = j.settings;
  const config::Model& m = j.model;
  const std::int64_t t = j.layout[Axis::tensor], rows = s.micro_batch_size * m.sequence,
                     own = s.sequence_parallel ? t : 1;
  if (s.recompute == config::Recompute::full) return 2 * rows * m.hidden / own;
  const bool scores = s.attention == config::AttentionKind::unfused && s.recompute == config::Recompute::none;
  const std::int64_t products = rows * m.hidden * 24 / t, streams = rows * m.hidden * 8 / own,
                     statistics = 4 * rows * (2 * 2) / own + 4 * rows * m.heads / t;
  return products + streams + statistics + (scores ? 2 * rows * m.heads / t * m.sequence : 0);
}

}  // namespace harness::workloads::closed
