#pragma once

#include <array>
#include <vector>

#include "base/text.h"
#include "config/choice.h"
#include "config/fields.h"
#include "config/registry.h"

namespace harness::config {

// The rows of the registry by family; registry.cpp puts the families together in this order. Within a family rows stand
// in the order in which tables show them.

std::vector<Variable> batch_variables();      // precision and batches
std::vector<Variable> sequence_variables();   // how long documents are, and how they lie in a batch
std::vector<Variable> layout_variables();     // how ranks divide the model, and the order of the passes of stages
std::vector<Variable> step_variables();       // what a step overlaps, fuses, keeps and computes again
std::vector<Variable> sharding_variables();   // what replicas divide, and how they exchange it
std::vector<Variable> execution_variables();  // how a backend runs it: threads, attention, graphs
std::vector<Variable> data_variables();       // what is trained on, and how a rank loads it
std::vector<Variable> nccl_variables();       // what NCCL reads from the environment
Variable env_variable();                      // the rest of the environment
Variable mended_variable();                   // what a prediction leaves out of the faults that are stated
std::vector<Variable> workload_variables();   // which workload, and the operation of those that are one

inline const std::vector<BackendKind> only_cpu{BackendKind::cpu};
inline const std::vector<BackendKind> only_cuda{BackendKind::cuda};
inline const std::vector<BackendKind> only_sim{BackendKind::sim};

/// For workloads; without it a variable is one of the training step.
inline const std::vector<std::string> any_workload, communicating{"gpt", "collective"};

inline constexpr int max_ranks = 1 << 20;  // of a job

/// The parts of "{key: value, …}". Throws Error, with `example`, for a text that is no such map or an empty one.
NameValues parts_of(std::string_view text, std::string_view example);

/// `row`, for a variable that is a whole number from low to high.
template <class Whole>
Variable whole(Whole Settings::*value, std::int64_t low, std::int64_t high, Variable row) {
  if (row.allowed.empty()) row.allowed = fmt::format("{} to {}", low, high);
  row.parse = [=](Settings& s, std::string_view text) { s.*value = static_cast<Whole>(parse_within(text, low, high)); };
  row.print = [=](const Settings& s) { return fmt::format("{}", s.*value); };
  return row;
}
/// `row`, for a variable that is a whole number from low to high, or a word ("all", "auto") for its default.
Variable whole_or(std::string word, int Settings::*value, int low, int high, Variable row);
/// `row`, for a variable that is a number of bytes, `least` or more.
Variable number_of_bytes(std::int64_t Settings::*bytes, std::int64_t least, Variable row);
/// `row`, for a variable that is true or false.
Variable true_or_false(bool Settings::*value, Variable row);
/// `row`, for a variable that is one of these words.
template <class T, std::size_t n>
Variable one_of(T Settings::*value, const std::array<Choice<T>, n>& choices, Variable row) {
  row.choices = {words_of(choices), true};
  row.parse = [=](Settings& s, std::string_view text) { s.*value = parse_choice(text, choices); };
  row.print = [=](const Settings& s) { return word_of(s.*value, choices); };
  return row;
}

/// For without_effect.
std::string without_communication(const Settings& settings);
bool has_one_replica(const Settings& settings);
std::string without_data_parallel(const Settings& settings);

/// For lacking: generations of GPUs as compute capabilities, 9.0 as 90.
inline constexpr int volta = 70, ampere = 80, ada = 89, hopper = 90, blackwell = 100;
/// "" where the hardware's file says that the GPU has this compute capability or a later one, or does not say; else
/// "`what` compute capability 9.0 (Hopper) or later; the GPU is …".
std::string below_capability(const Hardware& hardware, int needed, std::string_view what);

}  // namespace harness::config
