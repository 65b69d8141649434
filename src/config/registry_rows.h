#pragma once

#include <array>
#include <functional>
#include <vector>

#include "base/text.h"
#include "config/choice.h"
#include "config/fields.h"
#include "config/registry.h"

namespace harness::config {

// The rows of the registry by family. registry.cpp joins the families in this order; within a family, rows are in table
// order.

std::vector<Variable> batch_variables();      // precision and batches
std::vector<Variable> sequence_variables();   // document lengths, and how documents fill a batch
std::vector<Variable> layout_variables();     // how ranks partition the model, and the pipeline schedule
std::vector<Variable> step_variables();       // overlap, fusion, and activations kept or recomputed in a step
std::vector<Variable> sharding_variables();   // sharding among replicas, and their exchange
std::vector<Variable> execution_variables();  // how a backend runs a step: threads, attention, graphs
std::vector<Variable> data_variables();       // training data, and how a rank loads it
std::vector<Variable> nccl_variables();       // settings that NCCL reads from the environment
Variable env_variable();                      // the rest of the environment
Variable mended_variable();                   // the stated faults that a prediction leaves out
std::vector<Variable> workload_variables();   // the workload, and the operation of single-operation workloads

inline const std::vector<BackendKind> only_cpu{BackendKind::cpu};
inline const std::vector<BackendKind> only_cuda{BackendKind::cuda};
inline const std::vector<BackendKind> only_sim{BackendKind::sim};

/// For Variable::workloads, whose default is the training step.
inline const std::vector<std::string> any_workload, communicating{"gpt", "collective"};

inline constexpr int max_ranks = 1 << 20;  // of a job

/// Parses "{key: value, …}". Throws an Error that shows `example` if the text is no such map or an empty one.
NameValues parts_of(std::string_view text, std::string_view example);

/// Completes `row` for a variable that is a whole number from low to high.
template <class Whole>
Variable whole(Whole Settings::*value, std::int64_t low, std::int64_t high, Variable row) {
  if (row.allowed.empty()) row.allowed = fmt::format("{} to {}", low, high);
  row.parse = [=](Settings& s, std::string_view text) { s.*value = static_cast<Whole>(parse_within(text, low, high)); };
  row.print = [=](const Settings& s) { return fmt::format("{}", s.*value); };
  return row;
}
/// Completes `row` for a variable that is a whole number from low to high, or a word ("all", "auto") for its default.
Variable whole_or(std::string word, int Settings::*value, int low, int high, Variable row);
/// Completes `row` for a variable that is a number of bytes, `least` or more.
Variable number_of_bytes(std::int64_t Settings::*bytes, std::int64_t least, Variable row);
/// Completes `row` for a variable that is true or false.
Variable true_or_false(bool Settings::*value, Variable row);
/// Completes `row` for a variable that is one of these words.
template <class T, std::size_t n>
Variable one_of(T Settings::*value, const std::array<Choice<T>, n>& choices, Variable row) {
  row.choices = {words_of(choices), true};
  row.parse = [=](Settings& s, std::string_view text) { s.*value = parse_choice(text, choices); };
  row.print = [=](const Settings& s) { return word_of(s.*value, choices); };
  return row;
}

// For without_effect.

/// Says `why` wherever the setting, or what a function of Settings returns, has another value.
template <class Setting, class Value>
auto only_with(Setting setting, Value value, const char* why) {
  return [=](const Settings& s) { return std::string(std::invoke(setting, s) == value ? "" : why); };
}
/// Says `why` where the model is not cut along the axis.
inline auto only_along(program::Axis axis, const char* why) {
  return [=](const Settings& s) { return std::string(s.layout[axis] > 1 ? "" : why); };
}
std::string without_communication(const Settings& settings);
bool has_one_replica(const Settings& settings);
std::string without_data_parallel(const Settings& settings);

/// For lacking: generations of GPUs as compute capabilities, 9.0 as 90.
inline constexpr int volta = 70, ampere = 80, ada = 89, hopper = 90, blackwell = 100;
/// Returns "" if the hardware file states this compute capability or a later one, or none; else "`what` compute
/// capability 9.0 (Hopper) or later; the GPU is …".
std::string below_capability(const Hardware& hardware, int needed, std::string_view what);

}  // namespace harness::config
