#include "config/registry.h"

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "config/registry_rows.h"

namespace harness::config {
namespace {

std::vector<Variable> make_registry() {
  const auto others = [] { return std::vector<Variable>{env_variable(), mended_variable()}; };
  std::vector<Variable> rows;
  for (std::vector<Variable> (*family)() :
       {&batch_variables, &sequence_variables, &layout_variables, &step_variables, &sharding_variables,
        &execution_variables, &data_variables, &nccl_variables, +others, &workload_variables}) {
    for (Variable& row : family()) rows.push_back(std::move(row));
  }
  for (Variable& row : rows) {
    if (row.choices.all && row.allowed.empty()) row.allowed = join(row.choices.words, ", ");
  }
  return rows;
}

const char* generation_of(int capability) {
  if (capability >= blackwell) return "Blackwell";
  if (capability >= hopper) return "Hopper";
  if (capability >= ada) return "Ada";
  return capability >= ampere ? "Ampere" : "Volta";
}

}  // namespace

Variable whole_or(std::string word, int Settings::*value, int low, int high, Variable row) {
  const int by_word = Settings().*value;
  row.allowed = fmt::format("{}, or a whole number", word) + (low == 1 ? "" : fmt::format(" from {}", low));
  row.choices.words = {word};
  if (row.examples.empty()) row.examples = {"2", "4"};
  row.parse = [=](Settings& s, std::string_view text) {
    const bool number = !text.empty() && text.find_first_not_of("+-0123456789") == std::string_view::npos;
    if (text != word && !number) fail("found {}; allowed: {}, {} to {}", quote(text), word, low, high);
    s.*value = text == word ? by_word : static_cast<int>(parse_within(text, low, high));
  };
  row.print = [=](const Settings& s) { return s.*value == by_word ? word : fmt::format("{}", s.*value); };
  return row;
}

Variable number_of_bytes(std::int64_t Settings::*bytes, std::int64_t least, Variable row) {
  row.has_ranges = true;
  row.examples = {"50 MiB", "100 MiB"};
  row.parse = [=](Settings& s, std::string_view text) {
    const std::int64_t read = parse_bytes(text);
    if (read < least) fail("found {}; allowed: {} or more, such as 25 MiB", quote(text), print_bytes_exact(least));
    s.*bytes = read;
  };
  row.print = [=](const Settings& s) { return print_bytes_exact(s.*bytes); };
  return row;
}

Variable true_or_false(bool Settings::*value, Variable row) {
  row.choices = {true_false, true};
  row.parse = [=](Settings& s, std::string_view text) { s.*value = parse_bool(text); };
  row.print = [=](const Settings& s) { return s.*value ? "true" : "false"; };
  return row;
}

std::string without_communication(const Settings& s) {
  return s.ranks == 1 ? "there is only one rank, so nothing is communicated" : "";
}

bool has_one_replica(const Settings& s) {
  return s.ranks != 0 && s.ranks == s.replica_ranks();
}

std::string without_data_parallel(const Settings& s) {
  return has_one_replica(s) ? "data_parallel is 1, so there are no gradients to reduce" : "";
}

std::string below_capability(const Hardware& hardware, int needed, std::string_view what) {
  const int has = hardware.compute_capability;
  if (has == 0 || has >= needed) return "";
  return fmt::format("{} compute capability {}.{} ({}) or later; the GPU is {} (compute capability {}.{})", what,
                     needed / 10, needed % 10, generation_of(needed), hardware.name, has / 10, has % 10);
}

NameValues parts_of(std::string_view text, std::string_view example) {
  const auto parts = parse_map(text);
  if (!parts) fail("found {}; expected a map such as {}", quote(trim(text)), example);
  if (parts->empty()) fail("found {}, which is empty; expected a map such as {}", quote(trim(text)), example);
  return *parts;
}

bool Variable::honoured_by(std::string_view workload) const {
  return workloads.empty() || std::find(workloads.begin(), workloads.end(), workload) != workloads.end();
}

bool Variable::honoured_on(std::string_view backend, std::string_view as) const {
  return std::ranges::any_of(backends,
                             [&](BackendKind kind) { return name_of(kind) == backend || name_of(kind) == as; });
}

Purpose purpose_of(std::string_view name) {
  const Variable* variable = find_variable(name);
  return variable == nullptr ? Purpose::setting : variable->purpose;
}

std::string default_of(const Variable& variable) {
  return variable.print({});
}

std::vector<std::string> example_values(const Variable& variable) {
  std::vector<std::string> values = variable.examples;
  if (values.empty()) {
    constexpr std::size_t enough = 2;
    values = variable.choices.words;
    std::erase(values, default_of(variable));
    values.resize(std::min(values.size(), enough));
  }
  for (std::string& value : values) {
    const bool ends_item = value.find(',') != std::string::npos;  // of a list between brackets
    if (ends_item && !value.starts_with('{')) value = fmt::format("\"{}\"", value);
  }
  return values;
}

std::string example_of(const Variable& variable) {
  const std::vector<std::string> values = example_values(variable);
  if (variable.fixed) return fmt::format("{}: {}", variable.name, values.front());
  return fmt::format("sweep: {{{}: [{}]}}", variable.name, join(values, ", "));
}

std::span<const Variable> registry() {
  static const std::vector<Variable> rows = make_registry();
  return rows;
}

const Variable* find_variable(std::string_view name) {
  const auto found = std::ranges::find(registry(), name, &Variable::name);
  return found == registry().end() ? nullptr : &*found;
}

std::vector<std::string> variable_names() {
  return texts_of_all(registry(), &Variable::name);
}

}  // namespace harness::config
