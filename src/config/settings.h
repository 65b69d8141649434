#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/model.h"
#include "program/layout.h"
#include "program/links.h"
#include "program/view.h"

namespace harness::config {

// ---- Numbers

/// The number format of a step.
enum class Precision : std::uint8_t {
  fp32,
  bf16,
  tf32,  // fp32 storage, matrix products on tensor cores with 10-bit mantissas; cuda only
  fp16,  // with dynamic loss scaling
  // The four GEMMs of a layer in fewer bits, everything else as with bf16:
  fp8,    // one scale per tensor (Transformer Engine: current scaling)
  mxfp8,  // one scale per 32 elements (Transformer Engine: MXFP8BlockScaling)
  nvfp4,  // one scale per 16 elements; predictions only
};

struct PrecisionRow {
  Precision precision;
  const char* name;           // in configurations, hardware files and results
  program::DType storage;     // of activations, and of the weights that GEMMs read
  int product_mantissa_bits;  // of a GEMM's operands as they are multiplied
  int product_bits;           // of such an operand in memory
};
inline constexpr std::array<PrecisionRow, 7> precision_table{{
    {Precision::fp32, "fp32", program::DType::f32, program::row_of(program::DType::f32).mantissa_bits, 32},
    {Precision::bf16, "bf16", program::DType::bf16, program::row_of(program::DType::bf16).mantissa_bits, 16},
    {Precision::tf32, "tf32", program::DType::f32, 10, 32},
    {Precision::fp16, "fp16", program::DType::f16, program::row_of(program::DType::f16).mantissa_bits, 16},
    {Precision::fp8, "fp8", program::DType::bf16, 3, 8},
    {Precision::mxfp8, "mxfp8", program::DType::bf16, 3, 8},
    {Precision::nvfp4, "nvfp4", program::DType::bf16, 1, 4},
}};

/// For parse_choice() and word_of() (config/choice.h).
inline constexpr auto precision_choices = [] {
  std::array<std::pair<const char*, Precision>, precision_table.size()> choices{};
  for (std::size_t i = 0; i < choices.size(); ++i) {
    choices[i] = {precision_table[i].name, precision_table[i].precision};
  }
  return choices;
}();

inline constexpr const PrecisionRow& row_of(Precision precision) {
  return *std::ranges::find(precision_table, precision, &PrecisionRow::precision);
}
inline constexpr const char* name_of(Precision precision) {
  return row_of(precision).name;
}
/// Whether the GEMMs of layers use fewer bits than all other operations.
inline constexpr bool is_low(Precision precision) {
  return row_of(precision).product_bits < 16;
}
/// Whether the GEMMs of layers take 8-bit floats.
inline constexpr bool has_fp8_products(Precision precision) {
  return row_of(precision).product_bits == 8;
}
inline constexpr program::DType storage_of(Precision precision) {
  return row_of(precision).storage;
}

// ---- Faults of predictions

/// The kinds of cluster faults, named like their configuration keys.
enum class Fault : std::uint8_t {
  slow_gpu,             // a GPU throttled by heat or power
  slow_link,            // a node with part of its network bandwidth: a lost rail, a port at a lower rate
  pcie_downgraded,      // GPUs whose PCIe link has fewer lanes or an older generation than it should
  socket_fallback,      // NCCL found no adapter for RDMA and uses TCP
  no_gpudirect,         // adapters reach GPU memory through a copy in host memory
  acs_on,               // PCIe ACS routes traffic between GPU and adapter through the root complex
  tensor_across_nodes,  // ranks are placed round-robin, so neighbours are on different nodes
};

struct SlowGpu {
  int rank = 0;
  double speed = 1;  // share of its clocks, (0, 1]
  bool operator==(const SlowGpu&) const = default;
};
struct SlowLink {
  int node = 0;
  double share = 1;  // of its rate, (0, 1]
  bool operator==(const SlowLink&) const = default;
};
struct NarrowPcie {
  int rank = -1, node = -1;  // exactly one is set: a GPU, or all GPUs of a node
  double share = 1;          // of its rate, (0, 1]
  bool operator==(const NarrowPcie&) const = default;
};

/// The faults of a predicted cluster: `faults` of a configuration. docs/simulation.md lists the effect of each.
/// Ranks and nodes count from 0; they are checked once the job's size is known.
struct Faults {
  std::vector<SlowGpu> slow_gpus;
  std::vector<SlowLink> slow_links;
  std::vector<NarrowPcie> narrow_pcie;
  double socket_bytes_per_s = 0;  // of a node, over TCP; 0: NCCL uses RDMA
  bool no_gpudirect = false;
  bool acs_on = false;
  bool tensor_across_nodes = false;
  bool operator==(const Faults&) const = default;

  bool any() const { return !(*this == Faults()); }
  /// Returns the faults that are not mended.
  Faults without(const std::set<Fault>& mended) const;
};

/// Returns the node of each rank. With tensor_across_nodes, deals ranks to nodes round-robin (`mpirun --map-by node`,
/// Slurm's `--distribution=cyclic`), as many to each node as in `node_of`; otherwise returns `node_of`.
std::vector<int> places(const Faults& faults, std::vector<int> node_of);

/// "slow_gpu".
const char* name_of(Fault fault);
/// Returns "none", "all", or names separated by commas.
std::string print_mended(const std::set<Fault>& mended);

// ---- Settings

/// The source of document lengths.
enum class DocumentLengths : std::uint8_t {
  full,       // every document is as long as a sequence: there is no padding
  lognormal,  // median * exp(sigma * normal)
  uniform,    // min to max, equally likely
  file,       // drawn from the lengths in a text file
};

/// The compound variable `sequences`. Members of other distributions keep their defaults. Lengths are in tokens;
/// documents longer than a sequence are truncated to it.
struct Sequences {
  DocumentLengths lengths = DocumentLengths::full;
  std::int64_t median = 512;
  double sigma = 1;
  std::int64_t min = 1, max = 1024;
  std::string file;
  bool operator==(const Sequences&) const = default;
};

/// Reads the lengths in a text file, separated by blanks, commas or line ends. Throws an Error that names the file and
/// the problem.
std::vector<std::int64_t> read_document_lengths(const std::string& path);

// Values of variables. The help of their rows (registry_*.cpp) explains each of them.

enum class Batching : std::uint8_t { padded, packed };
enum class AttentionKind : std::uint8_t { fused, unfused };
enum class PipelineSchedule : std::uint8_t { one_forward_one_backward, gpipe, interleaved };
enum class Recompute : std::uint8_t { none, selective, full };
enum class Sharding : std::uint8_t { none, optimizer, gradients, parameters };
enum class ShardingGroup : std::uint8_t { data, node };
enum class GradCompression : std::uint8_t { none, top_k };
enum class AllReduceAlgorithm : std::uint8_t { ring, halving_doubling };

/// The workloads by configuration name: a training step, or one repeated operation. workloads/ has one file or folder
/// for each.
inline constexpr std::array<std::string_view, 4> workload_names{"gpt", "collective", "gemm", "attention"};
inline constexpr std::string_view training_workload = "gpt";

using CollectiveKind = program::Collective;
enum class CollectiveOver : std::uint8_t { world, tensor, data, pipeline };

/// The compound variable `gemm`: out[m, n] = op(a)[m, k] op(b)[k, n].
struct GemmShape {
  std::int64_t m = 4096, n = 4096, k = 4096;
  bool transpose_a = false, transpose_b = false;
  double flop() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
  bool operator==(const GemmShape&) const = default;
};

/// The compound variable `attention_shape`: causal self-attention of one rank.
struct AttentionProblem {
  std::int64_t batch = 1, heads = 16, head_dim = 128, sequence = 2048;
  std::int64_t group = 1;  // query heads per key/value head
  std::int64_t kv_heads() const { return heads / group; }
  bool operator==(const AttentionProblem&) const = default;
};

/// One value for every variable of the registry: all that can differ between two cases. A new variable needs a field
/// here and a row in the registry file of its family; tests name the rest (docs/architecture.md).
struct Settings {
  Precision precision = Precision::fp32;
  std::int64_t global_batch_size = 16;  // sequences per step, over all ranks
  std::int64_t micro_batch_size = 1;    // sequences per forward pass of one rank
  int gradient_accumulation = 0;        // micro-batches per replica and step; 0: derived from the global batch
  Sequences sequences;                  // lengths of their documents
  Batching batching = Batching::padded;
  /// The layout of one replica: 1 along the data axis, which takes the remaining ranks. Ranks along the context axis,
  /// for predictions only, share a sequence; in a case's layout they are adjacent along its data axis.
  program::Layout layout;
  PipelineSchedule pipeline_schedule = PipelineSchedule::one_forward_one_backward;
  int virtual_pipeline = 0;  // chunks of a stage; 0: as many as the schedule needs
  int ranks = 0;             // 0: all of the job; a case on N ranks uses ranks 0..N-1
  Recompute recompute = Recompute::none;
  int recompute_layers = 0;         // with full: the first N of each chunk of the model; 0: all
  bool sequence_parallel = false;   // norms and residual stream split by rows among tensor-parallel ranks
  bool tp_overlap = false;          // tensor-parallel collectives overlap their own GEMM; predictions only
  bool embedding_as_layer = false;  // embedding and loss count as a layer each when layers are split into stages
  Sharding sharding = Sharding::none;
  ShardingGroup sharding_group = ShardingGroup::data;
  bool overlap_param_gather = false;  // gather sharded weights behind earlier layers; else before the first layer
  int prefetch_layers = 1;            // with Sharding::parameters: layers whose weights are gathered ahead of their use
  program::DType grad_reduce_type = program::DType::f32;  // of gradients exchanged between replicas
  GradCompression grad_compression = GradCompression::none;
  double grad_compression_ratio = 0.01;
  bool overlap_grad_reduce = true;
  std::int64_t bucket_size_bytes = 25 << 20;  // of fp32 gradients
  bool overlap_optimizer = false;             // AdamW bucket by bucket, overlapping the backward pass
  double memory_cap = 1;                      // share of the device's memory that a worker may need
  bool fusion = true;                         // use the backend's fused kernels; else one kernel per operation
  AllReduceAlgorithm allreduce_algorithm = AllReduceAlgorithm::ring;
  AttentionKind attention = AttentionKind::fused;
  int attention_engine = -1;                // index among the library's fused kernels; -1: its own choice
  bool cuda_graph = true;                   // the step is captured once and launched as one
  int threads = 0;                          // 0: cores / ranks on the node
  std::string data_file;                    // training tokens (data/loader.h); "": synthetic
  int loader_workers = 2;                   // threads of a rank that load batches ahead; 0: the step loads its own
  int loader_prefetch = 4;                  // batches loaded ahead, by all workers together
  double loader_bytes_per_s = 0;            // of the file, delivered by a rank's storage; 0: not throttled
  double loader_cost_s = 0;                 // extra core time of a worker per token
  std::map<std::string, std::string> nccl;  // by variable name (nccl_algo); absent: left to NCCL
  std::set<Fault> mended;                   // faults that a prediction leaves out
  std::map<std::string, std::string> env;   // the variable `env`: any other environment variable, by its own name
  std::string workload{training_workload};  // of the whole experiment, never swept
  CollectiveKind collective = CollectiveKind::all_reduce;
  CollectiveOver collective_over = CollectiveOver::world;
  std::int64_t message_bytes = 25 << 20;  // nccl-tests' size: the whole buffer, including all its parts
  bool in_place = true;
  GemmShape gemm;
  AttentionProblem attention_shape;
  bool attention_backward = false;
  int repetitions = 20;  // executions of the operation per step
  bool operator==(const Settings&) const = default;

  /// The number of layer chunks on a pipeline stage.
  int chunks_of_stage() const {
    if (virtual_pipeline > 0) return virtual_pipeline;
    return pipeline_schedule == PipelineSchedule::interleaved ? 2 : 1;
  }
  /// Whether sequences hold shorter documents, and whether several documents share a sequence.
  bool has_documents() const { return sequences.lengths != DocumentLengths::full; }
  bool packs() const { return has_documents() && batching == Batching::packed; }
  /// Threads of a rank that load data, beside those that compute.
  int loader_threads() const { return data_file.empty() || workload != training_workload ? 0 : loader_workers; }
  /// Compute threads of a rank that has this many cores, on the cpu backend.
  int compute_threads(int cores) const { return threads > 0 ? threads : std::max(1, cores - loader_threads()); }
  /// Ranks that share a sequence.
  int context() const { return layout[program::Axis::context]; }
  /// Ranks that share a sequence of this workload. Of a repeated operation, each rank runs its own, and the layout may
  /// describe the step of a model.
  int sequence_ranks() const { return workload == training_workload ? context() : 1; }
  /// Ranks that hold one copy of the model, and those that share sequences with them. May exceed an int: a
  /// configuration may have any values.
  std::int64_t replica_ranks() const {
    std::int64_t product = 1;
    for (const int n : layout.size) product *= n;
    return product;
  }
};

}  // namespace harness::config
