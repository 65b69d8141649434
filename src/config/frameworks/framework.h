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

// Training frameworks, each with a table (tables.cpp). `export` writes through the tables, and a person who uses a
// framework's key in a configuration is told the name here.

/// Their keys are written in a table as
///   megatron    a flag of Megatron-LM's command line and its value: "--micro-batch-size", "4". The flags are those of
///               its main branch of August 2026 (megatron/training/arguments.py, and flags made from the fields of
///               TransformerConfig and ModelParallelConfig)
///   deepspeed   a dotted path into DeepSpeed's JSON (docs/_pages/config-json.md) and a JSON value: "bf16.enabled",
///               "true"
///   torchtitan  a dotted path into its configuration, which is its command line's without --, and its value:
///               "training.local_batch_size", "1"
enum class Framework : std::uint8_t { megatron, deepspeed, torchtitan };
inline constexpr std::array frameworks{Framework::megatron, Framework::deepspeed, Framework::torchtitan};

/// A sentence for people that may depend on the settings.
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

/// A key of a framework and its meaning here. By default both sides write a value alike.
struct FrameworkRow {
  std::string key = {};  // "": the framework has no key, which `unwritten` explains
  /// A variable ("micro_batch_size"), a part of one ("layout.tensor_parallel") or of a configuration ("model.layers").
  std::string here = {};
  /// Values in both directions, theirs and ours, where they differ; a value of ours that is not among them is left out.
  /// A switch has "" as its value.
  std::vector<std::pair<std::string, std::string>> values = {};
  /// The value under these settings, nullopt to leave the key out; instead of `values`.
  std::function<std::optional<std::string>(const Settings&)> print = {};
  std::function<std::optional<std::string>(const Model&)> print_model = {};  // the same for "model.…"
  /// Our value for one of theirs; instead of `values`. Throws Error for a value that has no equivalent.
  std::function<std::string(std::string_view theirs)> parse = {};
  Note note = {};          // what to know where the key is written and the two are not quite the same
  Note unwritten = {};     // what to do where no key of the variable is written, and omitting it says too little
  bool read_only = false;  // `export` never writes it
};

std::span<const FrameworkRow> rows_of(Framework framework);

/// Our value for one of theirs, as text of `row.here`; nullopt where the row alone does not say it. Throws Error.
std::optional<std::string> parse_theirs(const FrameworkRow& row, std::string_view theirs);

/// A setting as a framework spells it. Names and values are made from typed settings: nothing of a file's text is in
/// them.
struct FrameworkWords {
  NameValues flags = {};  // keys and values in the table's order; a value may be empty (a switch)
  std::string note = {};  // what else to know or do; "": nothing
  bool known() const { return !flags.empty(); }
};
FrameworkWords words_in(Framework framework, std::string_view variable, const Settings& settings);
/// The keys that describe a model.
NameValues model_words_in(Framework framework, const Model& model);

/// The name here of a key of a framework, of Hugging Face, NCCL or a benchmark, or why there is nothing of the kind; ""
/// for a key of none of them. Case, leading dashes and - for _ do not matter.
std::string known_elsewhere_as(std::string_view key);

}  // namespace harness::config
