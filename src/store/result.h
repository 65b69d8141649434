#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/model.h"
#include "machine/conditions.h"
#include "nccl/log.h"
#include "program/layout.h"

namespace harness::store {

// The contents of a result file as plain values. docs/file-format.md describes them in terms of HDF5. Analysis and
// report access results through this header alone.

inline constexpr double not_known = std::numeric_limits<double>::quiet_NaN();

enum class RunState : std::uint8_t { running = 0, complete = 1, partial = 2 };
enum class CaseStatus : std::uint8_t { pending = 0, ok = 1, failed = 2, impossible = 3 };
enum class BlockStatus : std::uint8_t {
  pending = 0,
  ok = 1,
  failed = 2,
  left_out = 3  // will never be measured: its case was settled, or the declared time was spent
};
/// Whether a case takes part in further rounds: neither dropped after failures nor impossible.
constexpr bool may_run(CaseStatus status) {
  return status == CaseStatus::pending || status == CaseStatus::ok;
}
const char* name_of(RunState state);
const char* name_of(CaseStatus status);
const char* name_of(BlockStatus status);

/// The purpose of a case. The file does not store it; it follows from name and variable.
enum class CaseRole : std::uint8_t {
  baseline,  // every other case is compared with it; for operations, at the baseline's size
  point,     // the baseline at another size of the operation: the cases of this size are compared with it
  control,   // the baseline repeated, at any size: its difference from the baseline is noise
  change,    // the baseline with one setting changed, at any size
};
inline constexpr std::string_view baseline_name = "baseline", control_name = "baseline_again";
/// Whether a case of this name is the control, at any size ("baseline_again at message_size=1 MiB").
bool is_control(std::string_view case_name);
/// Whether other cases are compared with it, and it with none.
constexpr bool is_reference(CaseRole role) {
  return role == CaseRole::baseline || role == CaseRole::point;
}

struct ResultCase {
  std::string name, variable, value;
  std::int32_t reference = 0;  // the case that it is compared with: the baseline at its size; a reference: itself
  CaseStatus status = CaseStatus::pending;
  std::string reason;                 // why it failed or cannot run, and other notes
  std::vector<std::string> settings;  // as text, in the order of Result::variables
  std::int32_t ranks = 0;
  program::Layout layout;
  std::int64_t micro_batches = 0;
  double tokens_per_step = 0;
  double model_flop_per_step = 0, noncausal_flop_per_step = 0, hardware_flop_per_step = 0;  // all ranks
  double goodput = 1;               // tokens per computed position: below 1 with padding
  double peak_flops_per_rank = 0;   // 0: unknown, and there is no MFU
  double planned_memory_bytes = 0;  // on the largest rank
  std::string program_hash;         // hexadecimal

  CaseRole role() const;
};

/// A row, of any table, that belongs to one case.
template <class Row>
concept AboutACase = requires(const Row& row) {
  { row.case_index } -> std::convertible_to<std::int32_t>;
};

/// The placement of a rank in a case. Ranks of one role run the same Program.
struct ResultRole {
  std::int32_t case_index = 0, rank = 0, role = 0;
  program::Coordinates at;
  std::int32_t node = -1;  // -1: not in the file; the node in the rank table counts
};

/// One scheduled block. Its seconds, losses and rank_seconds are row `block` of the matrices below.
struct ResultBlock {
  std::int32_t round = 0, position = 0, case_index = 0;
  BlockStatus status = BlockStatus::pending;
  std::int32_t session = -1;  // the `sweep` process that wrote it: 0, then 1 after the first --resume, …
  std::int32_t process = -1;  // blocks with the same number ran in turn in the same workers; -1: in workers of its own
  double start_unix_s = 0, setup_s = 0, first_step_s = 0, timed_total_s = 0;
  double total_s = not_known;    // until the workers have ended or wait for another block; NaN: not known
  double peak_memory_bytes = 0;  // largest rank
  std::int32_t peak_memory_rank = -1;
  std::int32_t skipped_steps = 0;  // timed steps without an update, after an overflow in fp16
  std::string reason;

  /// Whether it was started, so that the matrices may hold its values.
  bool has_run() const { return status == BlockStatus::ok || status == BlockStatus::failed; }
};

struct ResultInterval {
  std::int32_t case_index = 0, role = 0, rank = 0, operation = 0;
  std::string kind, stream, phase, what;
  std::int32_t micro_batch = -1, layer = -1;
  std::int32_t recomputed = 0;  // 1: recomputed for the backward pass
  double start_s = 0, end_s = 0;
  /// Parts of a communication that come first: waiting for later ranks of the same stage, then for other stages. NaN:
  /// not known, or not a communication.
  double waiting_s = not_known, bubble_s = not_known;
};

/// The sums over a role's operations of one kind in a step; its intervals have the same texts.
struct ResultOperations {
  std::int32_t case_index = 0, role = 0, recomputed = 0;
  std::string kind, stream, phase, what;
  std::string group;  // "tensor"; for sends and receives the axis, "pipeline"; for computation ""
  std::int64_t operations = 0;
  double model_flop = 0, bytes = 0;  // all of them together; bytes: read plus written, or the size of messages
  double limit_s = 0;                // for communications: the least time that the stated links allow; 0: not known
};

struct ResultTotal {
  std::int32_t case_index = 0, rank = 0;
  std::string kind, stream;
  double seconds = 0;
  std::int64_t operations = 0;
};

/// How one rank spent its profiled step: compute_s + exposed_s + idle_s = step_s.
struct ResultSplit {
  std::int32_t case_index = 0, rank = 0;
  double step_s = 0, compute_s = 0, communication_s = 0, exposed_s = 0, overlapped_s = 0, idle_s = 0;
  double loading_s = not_known;  // filling the inputs, part of idle_s or hidden
  /// Parts of communication_s, exposed or not: sums of those in ResultInterval.
  double waiting_s = not_known, bubble_s = not_known;
};

/// The squared norm of the gradients in a case's first step, each gradient counted once: for the parameters that the
/// tensor axis shards, and for the others.
struct ResultGradient {
  std::int32_t case_index = 0;
  double sharded_squares = 0, replicated_squares = 0;
};

/// How NCCL ran a collective of a case's step, from NCCL's log.
struct ResultNcclCall : nccl::Call {
  std::int32_t case_index = 0;
};

/// A line of NCCL's log in a case, or the outcome of a request, with the name "not honoured" or "not confirmed".
struct ResultNcclFact {
  std::int32_t case_index = 0;
  std::string name, value;
};

/// The devices during a block: means and extremes over ranks, and the energy of all together.
struct ResultGpu {
  std::int32_t ranks = 0;           // how many reported; 0: none
  machine::GpuStatistics together;  // the file stores neither its samples nor its highest power
  std::string throttling;           // "power cap, …": the file stores only reasons that are not harmless
};

/// A finding of doctor at the start of the sweep, about nodes or about the settings of a case.
struct ResultFinding {
  static constexpr std::int32_t no_case = -1;

  std::int32_t case_index = no_case;  // the case it concerns; no_case: the nodes themselves
  std::string verdict;                // fail, warn, unknown or info
  std::string check;                  // "pcie.width"
  std::string where;                  // in words: "node11", "all 16"
  std::int32_t nodes = 0;             // how many it concerns
  std::string evidence, remedy, docs;

  bool is_failure() const { return verdict == "fail"; }
  bool is_warning() const { return verdict == "warn"; }
  bool is_of_nodes() const { return case_index == no_case; }
};

/// The record of doctor at the start of the sweep; empty for predictions.
struct DoctorRecord {
  std::vector<ResultFinding> findings;  // worst first; those of cases after those of nodes
  std::string facts;                    // about each node, as doctor/record.h writes them; "": not kept
};

/// The operation that a case's step repeats, for workloads that are a single operation.
struct ResultPoint {
  std::int32_t case_index = 0;
  std::string operation;
  std::int64_t repetitions = 0;  // in a step
  double bytes = 0;              // per operation: a collective's size, as in nccl-tests; else read plus written
  double bus_factor = 0;         // bus bandwidth / algorithm bandwidth; 0: not a collective
  double limit_bytes_per_s = 0;  // for bus bandwidth (without a collective: bytes / time); 0: not known
  std::string limit_source;
  std::string uses = "";   // its place in the configured model's training step: "qkv, forward"; "": none, or no model
  std::int64_t count = 0;  // for a collective, as in nccl-tests (workloads::Rate); 0: not known, or not a collective
};

struct ResultRank {
  std::int32_t rank = 0, local_rank = 0, node = 0;
  std::string host, device;
  std::int32_t cores = 0, threads = 0;
  double memory_bytes = 0;  // per node
};

struct Result {
  std::string tool_version, created, run_uuid, name, backend, argv;
  std::string stands_for;  // the backend whose steps the numbers describe; for predictions another than `backend`
  RunState state = RunState::running;
  std::string standing;  // while running: its owner, or what was known about it when read; else ""
  std::int32_t ranks = 0, nodes = 1, sessions = 1;
  std::int32_t rounds = 0, warmup_steps = 0, steps = 0;  // steps: timed
  std::uint64_t seed = 0;
  double smallest_effect = 0.01;
  double confidence = 0.95;  // for all intervals together, as declared
  std::string extended;      // "12,18": the planned rounds of a complete sweep, each time more were added; "": never
  std::string looks;         // "5,8,12": declared rounds after which settled cases drop out; "": never
  std::string interval = "level";  // the basis of verdicts; "predicted": steps in virtual time
  std::string config_text, config_path;
  std::vector<std::string> overrides;
  config::Model model;
  std::string peak_source;        // "hardware file h100-sxm: …" | "measured: …" | "unknown"
  double memory_bytes_per_s = 0;  // for a rank's device, from its hardware file; 0: unknown
  std::string link_source;        // source of the link rates that communication is compared with; "": none is known
  std::string flop_formula;       // name of the MFU convention
  std::vector<std::string> variables;                            // registry names
  std::vector<std::pair<std::string, std::string>> environment;  // allow-listed, rank 0's
  std::vector<std::pair<std::string, std::string>> identity;     // library versions, CPU model, compiler, git
  std::vector<std::string> warnings;
  std::vector<ResultRank> rank_table;
  std::vector<ResultCase> cases;
  std::vector<ResultRole> roles;    // ranks of possible cases, by case and rank; none in older files (roles_of())
  std::vector<ResultBlock> blocks;  // every scheduled block, in order
  /// [block][warmup_steps + steps]: seconds = max over ranks; losses of the same steps. NaN: not measured. The row of a
  /// block that has not run is empty.
  std::vector<std::vector<float>> step_seconds, losses;
  /// [block][step * ranks + rank]; NaN for idle ranks. Left empty by read_result(path, {.rank_seconds = false}).
  std::vector<std::vector<float>> rank_seconds;
  std::vector<ResultInterval> timeline;
  std::vector<ResultTotal> totals;
  std::vector<ResultSplit> splits;
  std::vector<ResultOperations> operations;
  std::vector<ResultGradient> gradients;  // per possible case of a training step
  std::vector<ResultNcclCall> nccl_calls;
  std::vector<ResultNcclFact> nccl_facts;
  std::vector<std::pair<std::string, std::string>> tuning;  // choices made by timing, as the backend wrote them
  std::vector<ResultPoint> points;                          // per possible case; none for gpt
  std::vector<ResultGpu> gpu;                               // per block
  std::vector<machine::Conditions> conditions;              // per block
  DoctorRecord doctor;

  /// The backend whose steps the numbers describe: for a prediction the predicted one, else `backend`.
  std::string_view step_backend() const;
  /// Whether a rank of that step is a GPU, not a share of a machine's cores.
  bool ranks_are_gpus() const;
  /// Returns the case of a row of another table.
  const ResultCase& at(const AboutACase auto& row) const { return case_at(row.case_index); }
  const ResultCase& case_at(std::int32_t case_index) const { return cases[case_index]; }
  std::int32_t case_count() const { return static_cast<std::int32_t>(cases.size()); }
  /// Finds a case by its exact name; nullptr if there is none.
  const ResultCase* find_case(std::string_view case_name) const;
  /// nullptr in a file without cases.
  const ResultCase* baseline() const { return find_case(baseline_name); }
  /// Returns the index of one of `cases`, as rows of other tables refer to it.
  std::int32_t index_of(const ResultCase& result_case) const {
    return static_cast<std::int32_t>(&result_case - cases.data());
  }
  /// Returns the value of a variable in a case as text; "" if the file does not have the variable.
  std::string_view setting(const ResultCase& result_case, std::string_view variable) const;
  /// Returns the operation that the case's step repeats; nullptr if the workload is no single operation.
  const ResultPoint* find_point(std::int32_t case_index) const;
  /// Returns the step times of a block without warm-up: empty if the file has none.
  std::span<const float> timed_seconds(std::size_t block) const;
  /// The index of the first timed step in step_seconds, losses and rank_seconds.
  std::size_t first_timed_step() const { return warmup_steps; }
  std::size_t rank_count() const { return ranks; }
};

/// Returns the placement of a case's ranks, by rank, as in the file. Without it, follows the sizes of the layout, with
/// a role for each pipeline stage. Nodes that the file does not give come from the rank table.
std::vector<ResultRole> roles_of(const Result& result, std::int32_t case_index);

}  // namespace harness::store
