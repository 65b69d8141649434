#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text.h"
#include "config/model.h"
#include "config/settings.h"

namespace harness::config {

// Training frameworks, each with a table (tables.cpp). `export` writes through the tables, and the error for a
// framework's key in a configuration suggests our name.

/// Their keys are written in a table as
///   megatron    a flag of Megatron-LM's command line and its value: "--micro-batch-size", "4". The flags are those of
///               its main branch of August 2026 (megatron/training/arguments.py, and flags made from the fields of
///               TransformerConfig and ModelParallelConfig)
///   deepspeed   a dotted path into DeepSpeed's JSON (docs/_pages/config-json.md) and a JSON value: "bf16.enabled",
///               "true"
///   torchtitan  a dotted path into the configuration of its release 0.2.2, which is its command line's without --, and
///               its value: "training.local_batch_size", "1"
enum class Framework : std::uint8_t { megatron, deepspeed, torchtitan };
inline constexpr std::array frameworks{Framework::megatron, Framework::deepspeed, Framework::torchtitan};

/// A sentence for the user that may depend on the settings.
class Note {
 public:
  Note() = default;
  Note(const char* text) : says_([text](const Settings& /*s*/) { return std::string(text); }) {}
  template <class Says>
  requires std::is_invocable_v<Says, const Settings&> Note(Says says) : says_(std::move(says)) {}

  std::string for_settings(const Settings& s) const { return says_ ? says_(s) : ""; }

 private:
  std::function<std::string(const Settings&)> says_;
};

/// A key of a framework and its meaning here. By default both sides spell a value alike.
struct FrameworkRow {
  std::string key = {};  // "": the framework has no key, which `unwritten` explains
  /// A variable ("micro_batch_size"), a part of one ("layout.tensor_parallel") or of a configuration ("model.layers").
  std::string here = {};
  /// Pairs of their and our values, for both directions, if they differ; our values without a pair are not written. A
  /// switch has "" as its value.
  std::vector<std::pair<std::string, std::string>> values = {};
  /// Whether the key is written under these settings; without it, wherever it has a value.
  std::function<bool(const Settings&)> only_if = {};
  /// The value under these settings, nullopt to leave the key out; instead of `values`.
  std::function<std::optional<std::string>(const Settings&)> print = {};
  std::function<std::optional<std::string>(const Model&)> print_model = {};  // likewise for "model.…"
  /// Returns our value for one of theirs; instead of `values`. Throws Error for a value that has no equivalent.
  std::function<std::string(std::string_view theirs)> parse = {};
  /// Further keys and their values that these settings need in the framework; they are no settings here.
  std::function<NameValues(const Settings&)> beside = {};
  Note note = {};          // shown if a key is written and the two differ slightly
  Note unwritten = {};     // shown if no key of the variable is written and that needs an explanation
  bool read_only = false;  // `export` never writes it
};

std::span<const FrameworkRow> rows_of(Framework framework);

/// Returns our value for one of theirs, as text of `row.here`; nullopt if the row alone does not determine it. Throws
/// Error.
std::optional<std::string> parse_theirs(const FrameworkRow& row, std::string_view theirs);

/// A setting as a framework spells it. Names and values come from typed settings and contain no text from a file.
struct FrameworkWords {
  NameValues flags = {};  // keys and values in the table's order; a value may be empty (a switch)
  std::string note = {};  // further advice; "": none
  bool known() const { return !flags.empty(); }
};
FrameworkWords words_in(Framework framework, std::string_view variable, const Settings& settings);
/// Returns the keys that describe a model.
NameValues model_words_in(Framework framework, const Model& model);

/// What is known of a key of a framework, Hugging Face, NCCL or a benchmark.
struct KnownElsewhere {
  std::string here;  // our key, such as "model.layers"; "": there is none
  std::string hint;  // names our key, or says why there is none; "": the key is unknown
};
/// Ignores case, leading dashes and - for _.
KnownElsewhere known_elsewhere_as(std::string_view key);

}  // namespace harness::config
