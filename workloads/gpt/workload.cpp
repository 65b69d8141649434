#include "workloads/workload.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/text.h"
#include "config/model.h"
#include "config/registry.h"
#include "data/loader.h"
#include "workloads/gpt/buckets.h"
#include "workloads/gpt/documents.h"
#include "workloads/gpt/gpt.h"
#include "workloads/gpt/parameters.h"
#include "workloads/gpt/schedule.h"
#include "workloads/operations.h"

namespace harness::workloads {
namespace {

// Random tokens, or those of data_file. A token depends on its document's number in the run and its position: it is the
// same on every rank and in every layout. Without documents, every sequence is one.
class TokenSource : public program::InputSource {
 public:
  TokenSource(const Model& model, const Settings& settings, const Layout& layout, const Coordinates& at,
              std::uint64_t seed)
      : model_(model),
        batch_(gpt::global_batch(settings, layout)),
        local_(batch_ / layout[Axis::data]),
        first_(local_ * at[Axis::data]),
        seed_(seed),
        documents_(settings, model.sequence, batch_, seed),
        documents_of_step_(std::ssize(documents_.of_step(0))) {
    // The first pipeline stage reads the tokens, the last one the labels.
    const int stage = at[Axis::pipeline];
    if (settings.data_file.empty() || (stage != 0 && stage != layout[Axis::pipeline] - 1)) return;
    file_.emplace(settings.data_file, model.vocab);
    const std::int64_t needed = batch_ * (model.sequence + 1);
    if (file_->tokens() < needed)
      fail("data_file {} has {} tokens; a step needs {}, global_batch_size {} x (sequence {} + 1)", file_->path(),
           file_->tokens(), needed, batch_, model.sequence);
  }

  // Padding is token 0 without a label; the padding after a row's documents counts as one more document.
  void fill(const std::string& buffer, std::int64_t step, std::span<std::byte> to) const override {
    if (buffer == gpt::learning_rate_buffer) {
      *reinterpret_cast<float*>(to.data()) = learning_rate;
      return;
    }
    const std::vector<gpt::Document> documents = documents_.of_step(step);
    if (buffer == gpt::loss_scale_buffer) {
      double tokens = 0;
      for (const gpt::Document& document : documents) tokens += static_cast<double>(document.length);
      *reinterpret_cast<float*>(to.data()) = static_cast<float>(1 / tokens);
      return;
    }
    const bool labels = buffer == gpt::labels_buffer, positions = buffer == gpt::position_ids_buffer;
    const std::int64_t shift = labels ? 1 : 0;
    auto* out = reinterpret_cast<std::int32_t*>(to.data());
    std::fill_n(out, local_ * model_.sequence, labels ? -1 : 0);
    std::vector<std::int64_t> used(static_cast<std::size_t>(local_));
    for (const gpt::Document& document : documents) {
      if (document.row < first_ || document.row >= first_ + local_) continue;
      std::int32_t* here = out + (document.row - first_) * model_.sequence + document.first;
      used[static_cast<std::size_t>(document.row - first_)] = document.first + document.length;
      if (positions) {
        std::iota(here, here + document.length, 0);
      } else {
        read_document(step * documents_of_step_ + document.number, shift,
                      {here, static_cast<std::size_t>(document.length)});
      }
    }
    for (std::int64_t row = 0; positions && row < local_; ++row) {
      std::iota(out + row * model_.sequence + used[static_cast<std::size_t>(row)], out + (row + 1) * model_.sequence,
                0);
    }
  }

 private:
  // Reads tokens of a document, from number `shift` on. A file starts over after its last one.
  void read_document(std::int64_t document, std::int64_t shift, std::span<std::int32_t> out) const {
    const std::int64_t length = model_.sequence + 1;
    if (file_) return file_->read(document % (file_->tokens() / length) * length + shift, out);
    for (std::size_t t = 0; t < out.size(); ++t) {
      const std::int64_t number = document * length + shift + static_cast<std::int64_t>(t);
      out[t] = data::synthetic_token(seed_, static_cast<std::uint64_t>(number), model_.vocab);
    }
  }

  static constexpr float learning_rate = 1e-3F;

  Model model_;
  std::optional<data::TokenFile> file_;
  std::int64_t batch_, local_, first_;
  std::uint64_t seed_;
  gpt::Documents documents_;
  std::int64_t documents_of_step_;  // if packed, about as many: a file is read from end to end
};

// A pass is one layer's work on one micro-batch: some thirty operations, 30 KiB and 40 us of planning. The limit is
// their memory: 2 GiB.
constexpr std::int64_t max_passes = 65536;
// Each stage has its own Programs: 0.2 MiB and 4 ms.
constexpr int max_stages = 1024;

std::string why_too_long(const Model& model, const Settings& s, std::int64_t share) {
  const auto widest =
      static_cast<double>(std::max({model.vocab, model.fc1_outputs(), 3 * model.hidden, model.heads * model.sequence}));
  const double tokens = static_cast<double>(s.micro_batch_size) * static_cast<double>(model.sequence);
  if (tokens * widest * static_cast<double>(model.layers) > 0x1p57) {  // bytes and their sums would overflow 64 bits
    return fmt::format("micro_batch_size {} * sequence {} is too large for this model: no tensor is as large",
                       s.micro_batch_size, model.sequence);
  }
  const std::int64_t micro_batches = share / s.micro_batch_size;
  if (micro_batches <= max_passes / std::max<std::int64_t>(model.layers, 1)) return "";
  return fmt::format(
      "layers {} * micro-batches {} is more than the {} that harness plans in a step: use more ranks, a larger "
      "micro_batch_size, a smaller global_batch_size or fewer layers",
      model.layers, micro_batches, max_passes);
}

std::string why_not_recomputed(const Model& model, const Settings& s, const Layout& layout) {
  int longest = 0;
  for (int stage = 0; stage < layout[Axis::pipeline]; ++stage) {
    for (const gpt::Chunk& chunk : gpt::chunks_of(model, s, layout, stage)) longest = std::max(longest, chunk.layers);
  }
  if (s.recompute != config::Recompute::full || s.recompute_layers <= longest) return "";
  return fmt::format("recompute_layers {} is more than the {} layers of a chunk of the model; allowed: 1 to {}, or all",
                     s.recompute_layers, longest, longest);
}

std::string why_not_on_nodes(const Settings& s, const Layout& layout) {
  const int replicas = layout[Axis::data];
  const bool asked = s.sharding != config::Sharding::none && s.sharding_group == config::ShardingGroup::node;
  if (!asked || replicas == 1) return "";
  switch (layout.replicas_of_node) {
    case 0:
      return "sharding_group node: it is not known how many ranks share a node; `plan --ranks-per-node N` says it";
    case Layout::uneven:
      return fmt::format(
          "sharding_group node: not every node has as many of the {} replicas one after the other; start as many ranks "
          "on each node, or use another layout, another rank_order or sharding_group data",
          replicas);
    case 1:
      return fmt::format(
          "sharding_group node: each of the {} replicas is on a node of its own, so there is none to divide with; use "
          "sharding_group data, or a layout or rank_order with several replicas on a node",
          replicas);
    default:
      return "";
  }
}

// These shardings reduce after each backward pass, and a pipeline runs many of them before a stage's last one.
std::string why_not_sharded(const Model& model, const Settings& s, const Layout& layout) {
  if (s.sharding <= config::Sharding::optimizer || gpt::shards_of(s, layout) == 1) return "";
  if (const int stages = layout[Axis::pipeline]; stages > 1) {
    return fmt::format(
        "sharding {} and pipeline_parallel {} do not go together: every stage would reduce every micro-batch by "
        "itself; use sharding optimizer, or pipeline_parallel 1",
        config::find_variable("sharding")->print(s), stages);
  }
  if (s.sharding != config::Sharding::parameters || s.prefetch_layers < model.layers) return "";
  return fmt::format("prefetch_layers {} is more than the {} other layers of the model", s.prefetch_layers,
                     model.layers - 1);
}

// Gathered indices are 32-bit numbers.
std::string why_not_compressed(const Model& model, const Settings& s, const Layout& layout) {
  if (s.grad_compression == config::GradCompression::none || layout[Axis::data] == 1) return "";
  for (int stage = 0; stage < layout[Axis::pipeline]; ++stage) {
    for (const View& bucket : gpt::bucket_places(gpt::parameters(model, s, layout, stage), 1)) {
      if (bucket.count <= std::numeric_limits<std::int32_t>::max()) continue;
      return fmt::format(
          "grad_compression: a bucket of {} gradients has more than indices of 32 bits tell apart; use more "
          "tensor_parallel, a smaller bucket_size or grad_compression none",
          bucket.count);
    }
  }
  return "";
}

// The multiples of `step` next to `wrong`, to suggest as batch sizes.
std::string nearest_multiples(std::int64_t step, std::int64_t wrong) {
  const std::int64_t below = wrong / step * step;
  return below == 0 ? fmt::format("{}", step) : fmt::format("{} or {}", below, below + step);
}

class GptWorkload : public Workload {
 public:
  std::string_view name() const override { return "gpt"; }

  std::string why_impossible(const Model& model, const Settings& s) const override {
    if (std::string why = config::why_impossible(model); !why.empty()) return why;
    const int tensor = s.layout[Axis::tensor], pipeline = s.layout[Axis::pipeline];
    // heads is a multiple of kv_heads and hidden one of heads, so a divisor of kv_heads divides them all; the most
    // telling names come first.
    for (const auto& [name, number] : {std::pair{"heads", model.heads}, std::pair{"kv_heads", model.key_heads()},
                                       std::pair{"ffn", model.mlp_width()}}) {
      if (number % tensor == 0) continue;
      return fmt::format("tensor_parallel {} does not divide {} {}; nearest that does: {}", tensor, name, number,
                         config::nearest_divisors(number, tensor));
    }
    if (model.vocab % tensor != 0) {
      return fmt::format("tensor_parallel {} does not divide vocab {}; pad the vocabulary to {}", tensor, model.vocab,
                         (model.vocab / tensor + 1) * tensor);
    }
    if (const std::int64_t rows = s.micro_batch_size * model.sequence / s.context();
        s.sequence_parallel && rows % tensor != 0) {
      return fmt::format(
          "sequence_parallel: tensor_parallel {} does not divide the {} rows of a micro-batch (micro_batch_size {} * "
          "sequence {}); nearest that does: {}",
          tensor, rows, s.micro_batch_size, model.sequence, config::nearest_divisors(rows, tensor));
    }
    if (model.sequence % (2 * s.context()) != 0 && s.context() > 1) {
      return fmt::format("context_parallel {}: sequence {} is not a multiple of {}, two parts for each rank",
                         s.context(), model.sequence, 2 * s.context());
    }
    const int chunks = s.chunks_of_stage();
    if (model.layers + (s.embedding_as_layer ? 2 : 0) < std::int64_t{pipeline} * chunks) {
      return fmt::format("pipeline_parallel {}{} is more than layers {}: {} has at least one layer", pipeline,
                         chunks > 1 ? fmt::format(" * virtual_pipeline {}", chunks) : "", model.layers,
                         chunks > 1 ? "a chunk of a stage" : "a stage");
    }
    return "";
  }

  std::string why_impossible_on(const Model& model, const Settings& s, const Layout& layout) const override {
    const int data = gpt::replicas(s, layout), stages = layout[Axis::pipeline];
    if (stages > max_stages) {
      return fmt::format("pipeline_parallel {} is more than the {} stages that harness plans", stages, max_stages);
    }
    const std::int64_t batch = gpt::global_batch(s, layout);
    if (batch % data != 0) {
      return fmt::format("data_parallel {} ({} ranks / {}) does not divide global_batch_size {}; nearest batches: {}",
                         data, layout.ranks(), layout.ranks() / data, batch, nearest_multiples(data, batch));
    }
    const std::int64_t share = batch / data;
    if (share % s.micro_batch_size != 0) {
      return fmt::format(
          "micro_batch_size {} does not divide the {} sequences of a replica (global_batch_size {} / data_parallel "
          "{}); nearest that does: {}",
          s.micro_batch_size, share, batch, data, config::nearest_divisors(share, s.micro_batch_size));
    }
    const std::int64_t micro_batches = share / s.micro_batch_size;
    if (s.pipeline_schedule == config::PipelineSchedule::interleaved && micro_batches % stages != 0) {
      return fmt::format(
          "pipeline_schedule interleaved takes micro-batches in groups of pipeline_parallel {}, which does not divide "
          "the {} of a replica; nearest numbers: {}",
          stages, micro_batches, nearest_multiples(stages, micro_batches));
    }
    if (std::string why = gpt::why_not_fp8(model, s, layout); !why.empty()) return why;
    if (std::string why = why_not_on_nodes(s, layout); !why.empty()) return why;
    if (std::string why = why_not_sharded(model, s, layout); !why.empty()) return why;
    if (std::string why = why_not_recomputed(model, s, layout); !why.empty()) return why;
    if (std::string why = why_too_long(model, s, share); !why.empty()) return why;
    return why_not_compressed(model, s, layout);
  }

  ProgramSet programs(const Model& model, const Settings& settings, const Layout& layout) const override {
    return gpt::programs(model, settings, layout);
  }

  std::optional<program::FoldedStep> folded(const Model& model, const Settings& settings,
                                            const Layout& layout) const override {
    constexpr std::int64_t least_micro_batches = 8, least_passes = 512;  // of layers; below, folding saves little
    const std::int64_t share = micro_batches(settings, layout);
    if (share < least_micro_batches || share * model.layers < least_passes) return std::nullopt;
    if (settings.sharding > config::Sharding::optimizer && gpt::shards_of(settings, layout) > 1) return std::nullopt;
    return gpt::folded(model, settings, layout);
  }

  std::unique_ptr<program::InputSource> inputs(const Model& model, const Settings& settings, const Layout& layout,
                                               const Coordinates& at, std::uint64_t seed) const override {
    return std::make_unique<TokenSource>(model, settings, layout, at, seed);
  }

  std::vector<GradientPart> gradients(const Model& model, const Settings& settings, const Layout& layout,
                                      const Coordinates& at, const Program& program) const override {
    const View whole = find_buffer(program, gpt::gradient_buffer);
    const int shards = gpt::shards_of(settings, layout);
    const int replicas = layout[Axis::data] * layout[Axis::context] / shards;
    const auto list = gpt::parameters(model, settings, layout, at[Axis::pipeline]);
    const std::vector<View> buckets = gpt::bucket_places(list, shards);
    const bool all_here = whole.count == buckets.front().offset + buckets.front().count;
    std::vector<GradientPart> parts;
    for (const gpt::Parameter& p : list) {
      const gpt::OwnRange own = gpt::own_range(p, buckets, shards, at);
      if (own.count == 0) continue;
      const int holders = replicas * (p.sharded ? 1 : layout[Axis::tensor]) * (p.tied ? 2 : 1);
      parts.push_back({whole.part(all_here ? own.first : own.in_shard, own.count), p.sharded, holders,
                       gpt::first_gradient_scale(settings)});
    }
    return parts;
  }

  std::int64_t tokens_per_step(const Model& model, const Settings& settings, const Layout& layout) const override {
    const std::int64_t positions = gpt::global_batch(settings, layout) * model.sequence;
    return std::llround(static_cast<double>(positions) * filling(model, settings, layout).tokens);
  }
  Filling filling(const Model& model, const Settings& settings, const Layout& layout) const override {
    Filling filled = gpt::filled_by(settings, model.sequence, gpt::global_batch(settings, layout));
    if (settings.packs()) filled.attention = 1;  // the FLOP that the Programs count exclude what documents mask
    return filled;
  }
  std::int64_t micro_batches(const Settings& settings, const Layout& layout) const override {
    return gpt::global_batch(settings, layout) / gpt::replicas(settings, layout) / settings.micro_batch_size;
  }
  std::string flop_formula(const Model& model) const override {
    // The form in papers, where it holds: for the products of a model as wide as GPT-2's.
    const bool as_gpt2 = model.key_heads() == model.heads && model.fc1_outputs() == 4 * model.hidden;
    if (as_gpt2 && model.activation == config::Activation::gelu)
      return "causal model FLOPs: 72 B s L h^2 (1 + s/12h + V/12Lh), 2 per multiply-add";
    return fmt::format("causal model FLOPs: 6 B s (L h (2 h + 2 k + {} f + s) + V h), k {}, f {}, 2 per multiply-add",
                       model.activation == config::Activation::swiglu ? 3 : 2, model.key_width(), model.mlp_width());
  }
};

}  // namespace

const Workload& gpt_workload() {
  static const GptWorkload workload;
  return workload;
}

}  // namespace harness::workloads
