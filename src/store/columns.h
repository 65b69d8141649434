#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/model.h"
#include "store/result.h"
#include "store/row_visitors.h"

// Every column of every table and every attribute of /run, once. docs/file-format.md says what they mean; a test
// compares the two. Tables that are written while blocks run have rows of a power of two bytes (row_visitors.h,
// TextSize).
namespace harness::store {

inline constexpr hdf5::TextSize reason_size{512, true};
inline constexpr hdf5::TextSize throttling_size{96, true};
inline constexpr hdf5::TextSize host_size{64, true};
inline constexpr std::size_t warning_bytes = 512;

/// Which columns of a table there are: all, or those that a file has, which an earlier version may have made.
class ColumnsThere {
 public:
  ColumnsThere() = default;
  explicit ColumnsThere(hdf5::Element in_file) : in_file_(std::move(in_file)) {}
  bool has(std::string_view name) const { return !in_file_ || in_file_->find(name) != nullptr; }

 private:
  std::optional<hdf5::Element> in_file_;
};

template <class Visitor, class Row>  // Row: ResultCase, const or not
void case_columns(Visitor& visit, Row& row, const std::vector<std::string>& variables, const ColumnsThere& there = {}) {
  visit.key("case");
  visit.text("name", row.name);
  visit.text("variable", row.variable);
  visit.text("value", row.value);
  if (there.has("reference")) visit.number("reference", row.reference);
  visit.word("status", row.status, CaseStatus::impossible);
  visit.number("ranks_used", row.ranks);
  for (const program::Axis axis : program::told_axes) visit.number(program::row_of(axis).key, row.layout[axis]);
  visit.number("micro_batches", row.micro_batches);
  visit.number("tokens_per_step", row.tokens_per_step);
  visit.number("model_flop_per_step", row.model_flop_per_step);
  visit.number("noncausal_flop_per_step", row.noncausal_flop_per_step);
  visit.number("hardware_flop_per_step", row.hardware_flop_per_step);
  visit.number("peak_flops_per_rank", row.peak_flops_per_rank);
  visit.number("planned_memory_bytes", row.planned_memory_bytes);
  visit.text("program_hash", row.program_hash, {32});
  for (std::size_t i = 0; i < variables.size(); ++i) visit.text(variables[i], row.settings[i]);
  visit.text("reason", row.reason, reason_size);
}

template <class Visitor, class Row>
void role_columns(Visitor& visit, Row& row, const ColumnsThere& there = {}) {
  visit.number("case", row.case_index);
  visit.number("rank", row.rank);
  visit.number("role", row.role);
  for (const program::Axis axis : program::told_axes) visit.number(program::name_of(axis), row.at[axis]);
  if (there.has("node")) visit.number("node", row.node);
}

template <class Visitor, class Row>
void block_columns(Visitor& visit, Row& row, const ColumnsThere& there = {}) {
  visit.key("block");
  visit.number("round", row.round);
  visit.number("position", row.position);
  visit.number("case", row.case_index);
  visit.word("status", row.status, BlockStatus::left_out);
  visit.number("session", row.session);
  if (there.has("process")) visit.number("process", row.process);
  visit.number("start_unix_s", row.start_unix_s);
  visit.number("setup_s", row.setup_s);
  if (there.has("build_s")) visit.number("build_s", row.build_s);
  if (there.has("connect_s")) visit.number("connect_s", row.connect_s);
  if (there.has("initialize_s")) visit.number("initialize_s", row.initialize_s);
  if (there.has("total_s")) visit.number("total_s", row.total_s);
  visit.number("first_step_s", row.first_step_s);
  visit.number("timed_total_s", row.timed_total_s);
  visit.number("peak_memory_bytes", row.peak_memory_bytes);
  visit.number("peak_memory_rank", row.peak_memory_rank);
  visit.text("reason", row.reason, reason_size);
}

template <class Visitor, class Row>
void interval_columns(Visitor& visit, Row& row, const ColumnsThere& there = {}) {
  visit.number("case", row.case_index);
  visit.number("role", row.role);
  visit.number("rank", row.rank);
  visit.number("operation", row.operation);
  // As long as the longest names there are (a test holds them to it), so that a row is 128 bytes and not 256.
  visit.text("kind", row.kind, {22});
  visit.text("stream", row.stream, {10});
  visit.text("phase", row.phase, {13});
  visit.number("micro_batch", row.micro_batch);
  visit.number("layer", row.layer);
  visit.number("start_s", row.start_s);
  visit.number("end_s", row.end_s);
  if (there.has("recomputed")) visit.number("recomputed", row.recomputed);
  if (there.has("waiting_s")) visit.number("waiting_s", row.waiting_s);
  if (there.has("bubble_s")) visit.number("bubble_s", row.bubble_s);
  visit.text("what", row.what, {23, true});
}

template <class Visitor, class Row>
void operations_columns(Visitor& visit, Row& row) {
  visit.number("case", row.case_index);
  visit.number("role", row.role);
  visit.text("kind", row.kind);
  visit.text("stream", row.stream);
  visit.text("phase", row.phase);
  visit.text("what", row.what);
  visit.number("recomputed", row.recomputed);
  visit.text("group", row.group);
  visit.number("operations", row.operations);
  visit.number("model_flop", row.model_flop);
  visit.number("bytes", row.bytes);
  visit.number("limit_s", row.limit_s);
}

template <class Visitor, class Row>
void total_columns(Visitor& visit, Row& row) {
  visit.number("case", row.case_index);
  visit.number("rank", row.rank);
  visit.text("kind", row.kind, {24});
  visit.text("stream", row.stream, {16});
  visit.number("seconds", row.seconds);
  visit.number("operations", row.operations);
}

template <class Visitor, class Row>
void split_columns(Visitor& visit, Row& row, const ColumnsThere& there = {}) {
  visit.number("case", row.case_index);
  visit.number("rank", row.rank);
  visit.number("step_s", row.step_s);
  visit.number("compute_s", row.compute_s);
  visit.number("communication_s", row.communication_s);
  visit.number("exposed_s", row.exposed_s);
  visit.number("overlapped_s", row.overlapped_s);
  visit.number("idle_s", row.idle_s);
  if (there.has("loading_s")) visit.number("loading_s", row.loading_s);
  if (there.has("waiting_s")) visit.number("waiting_s", row.waiting_s);
  if (there.has("bubble_s")) visit.number("bubble_s", row.bubble_s);
}

template <class Visitor, class Row>
void gradient_columns(Visitor& visit, Row& row) {
  visit.number("case", row.case_index);
  visit.number("sharded_squares", row.sharded_squares);
  visit.number("replicated_squares", row.replicated_squares);
}

template <class Visitor, class Row>
void nccl_call_columns(Visitor& visit, Row& row) {
  visit.number("case", row.case_index);
  visit.text("function", row.function);
  visit.number("bytes", row.bytes);
  visit.text("algorithm", row.algorithm);
  visit.text("protocol", row.protocol);
  visit.number("first_channel", row.first_channel);
  visit.number("last_channel", row.last_channel);
  visit.number("calls", row.calls);
}

template <class Visitor, class Row>
void nccl_fact_columns(Visitor& visit, Row& row) {
  visit.number("case", row.case_index);
  visit.text("name", row.name);
  visit.text("value", row.value);
}

template <class Visitor, class Row>
void point_columns(Visitor& visit, Row& row, const ColumnsThere& there = {}) {
  visit.number("case", row.case_index);
  visit.text("operation", row.operation);
  visit.number("repetitions", row.repetitions);
  visit.number("bytes", row.bytes);
  visit.number("bus_factor", row.bus_factor);
  visit.number("limit_bytes_per_s", row.limit_bytes_per_s);
  visit.text("limit_source", row.limit_source);
  if (there.has("uses")) visit.text("uses", row.uses);
  if (there.has("count")) visit.number("count", row.count);
}

template <class Visitor, class Row>
void gpu_columns(Visitor& visit, Row& row) {
  visit.key("block");
  visit.number("ranks", row.ranks);
  visit.number("utilisation", row.together.mean_utilisation);
  visit.number("sm_clock_hz", row.together.mean_sm_clock_hz);
  visit.number("min_sm_clock_hz", row.together.min_sm_clock_hz);
  visit.number("max_sm_clock_hz", row.together.max_possible_sm_clock_hz);
  visit.number("power_w", row.together.mean_power_w);
  visit.number("temperature_c", row.together.max_temperature_c);
  visit.number("memory_used_bytes", row.together.max_memory_used_bytes);
  visit.number("energy_j", row.together.energy_j);
  visit.text("throttling", row.throttling, throttling_size);
}

template <class Visitor, class Row>
void conditions_columns(Visitor& visit, Row& row) {
  visit.key("block");
  visit.number("load", row.load);
  visit.number("steal_share", row.steal_share);
  visit.number("foreign_cores", row.foreign_cores);
  visit.number("cpu_clock_hz", row.cpu_clock_hz);
  visit.text("busiest_host", row.busiest_host, host_size);
}

template <class Visitor, class Row>
void finding_columns(Visitor& visit, Row& row) {
  visit.number("case", row.case_index);
  visit.text("verdict", row.verdict);
  visit.text("check", row.check);
  visit.text("where", row.where);
  visit.number("nodes", row.nodes);
  visit.text("evidence", row.evidence);
  visit.text("remedy", row.remedy);
  visit.text("docs", row.docs);
}

template <class Visitor, class Row>
void rung_columns(Visitor& visit, Row& row) {
  visit.text("name", row.name);
  visit.number("alone", row.alone);
  visit.number("together", row.together);
}

template <class Visitor, class Row>
void stage_columns(Visitor& visit, Row& row) {
  visit.text("change", row.change);
  visit.text("was", row.was);
  visit.number("ratio", row.ratio);
  visit.number("low", row.low);
  visit.number("high", row.high);
  visit.number("step_seconds", row.step_seconds);
  visit.number("tokens_per_second", row.tokens_per_second);
  visit.number("mfu", row.mfu);
  visit.text("run_uuid", row.run_uuid);
  visit.text("path", row.path);
}

template <class Visitor, class Row>
void rank_columns(Visitor& visit, Row& row) {
  visit.number("rank", row.rank);
  visit.number("local_rank", row.local_rank);
  visit.number("node", row.node);
  visit.text("host", row.host);
  visit.text("device", row.device);
  visit.number("cores", row.cores);
  visit.number("threads", row.threads);
  visit.number("memory_bytes", row.memory_bytes);
}

template <class Visitor, class Row>  // Row: a pair of texts
void pair_columns(Visitor& visit, Row& row) {
  visit.text("name", row.first);
  visit.text("value", row.second);
}

/// Whether all files have an attribute, or older ones do not, whose results then keep their default.
enum class Since : std::uint8_t { first, later };

template <class Visitor, class R>  // R: Result, const or not
void run_attributes(const Visitor& visit, R& result) {
  visit("name", result.name);
  visit("backend", result.backend);
  visit("stands_for", result.stands_for, Since::later);
  visit("config_path", result.config_path);
  visit("ranks", result.ranks);
  visit("nodes", result.nodes);
  visit("rounds", result.rounds);
  visit("warmup_steps", result.warmup_steps);
  visit("steps", result.steps);
  visit("seed", result.seed);
  visit("smallest_effect", result.smallest_effect);
  visit("interval", result.interval, Since::later);
  visit("confidence", result.confidence, Since::later);
  visit("looks", result.looks, Since::later);
  visit("extended", result.extended, Since::later);
  visit("model_name", result.model.name);
  config::each_key(result.model, [&](const config::ModelKey& key, auto& value) {
    visit(key.name, value, key.first_models ? Since::first : Since::later);
  });
  visit("peak_source", result.peak_source);
  visit("flop_formula", result.flop_formula);
  visit("memory_bytes_per_s", result.memory_bytes_per_s, Since::later);
  visit("link_source", result.link_source, Since::later);
}

}  // namespace harness::store
