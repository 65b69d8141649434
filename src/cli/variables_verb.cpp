#include <algorithm>
#include <ostream>

#include "base/error.h"
#include "base/text.h"
#include "cli/schema.h"
#include "cli/verbs.h"
#include "config/choice.h"
#include "config/frameworks/framework.h"
#include "config/registry.h"
#include "report/clean_text.h"

namespace harness::cli {
namespace {

constexpr std::size_t width = 100;

std::string backends_of(const config::Variable& v) {
  std::vector<std::string> names;
  for (const config::BackendKind kind : v.backends) names.emplace_back(config::name_of(kind));
  return join(names, ", ");
}

std::string workloads_of(const config::Variable& v) {
  return v.workloads.empty() ? "all" : join(v.workloads, ", ");
}

std::string swept_as(const config::Variable& v) {
  if (v.fixed) return "no: the same for all cases, at the top of a configuration";
  return v.purpose == config::Purpose::size ? "yes, also from_model" : "yes";
}

// `measure.weight` has a key for each variable, which need no lines of their own.
bool explains_itself(const config::Key& key) {
  return key.help.empty();
}

std::string line(std::string_view label, const std::string& text) {
  constexpr std::size_t indent = 13;
  return fmt::format("  {:9}  {}", label, report::wrapped(text, width - indent, indent));
}

std::string paragraph(const std::string& text) {
  return "  " + report::wrapped(text, width, 2);
}

std::string entry(const config::Variable& v) {
  std::string out = v.name + "\n" + paragraph(v.help);
  out += line("values", v.allowed) + line("default", config::default_of(v)) + line("backends", backends_of(v));
  out += line("workloads", workloads_of(v)) + line("swept", swept_as(v));
  if (!v.environment_name.empty()) out += line("sets", v.environment_name + " in the workers' environment");
  return out + line("example", config::example_of(v));
}

std::string entry(const config::Key& key) {
  std::string out = key.name + "\n" + paragraph(key.help);
  if (!key.allowed.empty()) out += line("values", key.allowed);
  if (!key.fallback.empty()) out += line("default", key.fallback);
  if (key.required) out += line("required", "yes");
  return out;
}

// A variable, a key with those inside it, or the last word of a key: "rounds" is measure.rounds.
std::string entries_of(const std::string& name, const std::vector<config::Key>& keys) {
  if (const config::Variable* v = config::find_variable(name); v != nullptr) return entry(*v);
  std::string out;
  for (const config::Key& key : keys) {
    if (explains_itself(key)) continue;
    if (key.name == name || key.name.starts_with(name + ".") || key.name.ends_with("." + name)) {
      out += (out.empty() ? "" : "\n") + entry(key);
    }
  }
  return out;
}

[[noreturn]] void unknown(const std::string& name, const std::vector<config::Key>& keys) {
  if (const std::string known = config::known_elsewhere_as(name); !known.empty()) {
    fail("{} is no variable and no key: {}", quote(name), known);
  }
  std::vector<std::string> names = config::variable_names(), tails;
  for (const config::Key& key : keys) {
    names.push_back(key.name);
    tails.push_back(key.name.substr(key.name.rfind('.') + 1));
  }
  std::string near = nearest(name, names);
  if (near.empty()) near = nearest(name, tails);
  fail("{} is no variable and no key; `harness variables` lists them{}", quote(name), did_you_mean(near));
}

std::string all_text(const std::vector<config::Key>& keys) {
  std::string out = "Variables: a value each under `baseline`, a list of values under `sweep`.\n";
  for (const config::Variable& v : config::registry()) {
    out += "\n" + v.name + "\n" + paragraph(v.help);
    std::string facts = fmt::format("{} (default: {})", v.allowed, config::default_of(v));
    if (v.backends.size() == 1) facts += "; only backend " + backends_of(v);
    if (!v.workloads.empty()) facts += "; workload " + workloads_of(v);
    out += paragraph(facts);
  }
  out += "\nOther keys of a configuration\n";
  for (const config::Key& key : keys) {
    if (explains_itself(key)) continue;
    out += "\n" + key.name + "\n" + paragraph(key.help);
    std::string facts = key.allowed;
    if (!key.fallback.empty()) facts += fmt::format("{}(default: {})", facts.empty() ? "" : " ", key.fallback);
    if (key.required) facts += facts.empty() ? "required" : "; required";
    if (!facts.empty()) out += paragraph(facts);
  }
  return out + "\nAn entry in full, with an example: harness variables NAME\n";
}

std::string code(const std::string& text) {
  return text.empty() ? "" : "`" + text + "`";
}

std::string all_markdown(const std::vector<config::Key>& keys) {
  std::string out =
      "# Variables and keys\n\n"
      "What a configuration may say. This page is the output of `harness variables --format md`; `harness variables "
      "NAME`\n"
      "prints one entry.\n\n"
      "## Variables\n\n"
      "A variable is what two cases of a sweep can differ in. It has one value under `baseline`, and under `sweep` a "
      "list\n"
      "of the values to try. `workload` alone is the same for all cases and stands at the top.\n\n"
      "| variable | what it is | values | default | backends | workloads | example |\n|---|---|---|---|---|---|---|\n";
  for (const config::Variable& v : config::registry()) {
    out += fmt::format("| {} | {} | {}{} | {} | {} | {} | {} |\n", code(v.name), v.help, v.allowed,
                       v.purpose == config::Purpose::size ? "; under `sweep` also `from_model`" : "",
                       code(config::default_of(v)), backends_of(v), workloads_of(v), code(config::example_of(v)));
  }
  out += "\n## Keys\n\n| key | what it is | values | default |\n|---|---|---|---|\n";
  for (const config::Key& key : keys) {
    if (explains_itself(key)) continue;
    out += fmt::format("| {} | {} | {} | {} |\n", code(key.name), key.help, key.allowed,
                       key.required && key.fallback.empty() ? "required" : key.fallback);
  }
  return out;
}

}  // namespace

int variables(const VariablesOptions& options, std::ostream& out) {
  const bool whole = options.schema || options.format != "text";
  if (!options.name.empty() && whole)
    fail("{} writes all variables; leave out {}", options.schema ? "--schema" : "--format " + options.format,
         quote(options.name));
  const std::vector<config::Key> keys = config::keys();
  if (options.schema) {
    out << configuration_schema();
  } else if (options.format == "md") {
    out << all_markdown(keys);
  } else if (options.name.empty()) {
    out << all_text(keys);
  } else {
    const std::string text = entries_of(options.name, keys);
    if (text.empty()) unknown(options.name, keys);
    out << text;
  }
  return 0;
}

}  // namespace harness::cli
