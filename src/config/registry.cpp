#include "config/registry.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "config/choice.h"
#include "config/fields.h"
#include "config/registry_rows.h"

namespace harness {
namespace {

constexpr std::array<Choice<BackendKind>, 3> backend_choices{
    {{"cpu", BackendKind::cpu}, {"cuda", BackendKind::cuda}, {"sim", BackendKind::sim}}};

std::vector<Variable> make_registry() {
  std::vector<Variable> rows = training_variables();
  for (auto& family : {execution_variables(), nccl_variables()}) {
    std::copy(family.begin(), family.end(), std::back_inserter(rows));
  }
  rows.push_back(env_variable());
  return rows;
}

}  // namespace

int within_or_word(std::string_view text, std::string_view word, int high) {
  if (text == word) return 0;
  const bool number = !text.empty() && text.find_first_not_of("+-0123456789") == std::string_view::npos;
  if (!number) fail("found {}; allowed: {}, 1 to {}", quote(text), word, high);
  return static_cast<int>(parse_within(text, 1, high));
}

bool parse_flag(std::string_view text) {
  for (const auto& [word, value] : {Choice<bool>{"on", true},
                                    {"off", false},
                                    {"true", true},
                                    {"false", false},
                                    {"True", true},
                                    {"False", false},
                                    {"TRUE", true},
                                    {"FALSE", false}}) {
    if (text == word) return value;
  }
  const std::vector<std::string> words{"true", "false"};
  fail("found {}; allowed: true, false (or on, off){}", quote(text), did_you_mean(nearest(text, words)));
}

std::string without_communication(const Settings& s) {
  return s.ranks == 1 ? "there is one rank, nothing is communicated" : "";
}

const char* name_of(BackendKind kind) {
  return backend_choices.at(static_cast<std::size_t>(kind)).first;
}

BackendKind parse_backend(std::string_view text) {
  return parse_choice(text, backend_choices);
}

std::span<const Variable> registry() {
  static const std::vector<Variable> rows = make_registry();
  return rows;
}

const Variable* find_variable(std::string_view name) {
  for (const Variable& v : registry()) {
    if (v.name == name) return &v;
  }
  return nullptr;
}

std::vector<std::string> variable_names() {
  std::vector<std::string> names;
  names.reserve(registry().size());
  for (const Variable& v : registry()) names.push_back(v.name);
  return names;
}

}  // namespace harness
