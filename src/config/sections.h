#pragma once

#include <optional>
#include <string>

#include "config/cost.h"
#include "config/experiment.h"
#include "config/problems.h"
#include "config/yaml_tree.h"

namespace harness::config {

// The parts of a configuration, a source file each. All add to `problems` what is wrong and go on.

/// A preset's name, a map of all five numbers, or a map with `preset` and the numbers that differ from it.
Model read_model(const YamlNode& node, const std::string& key, Problems& problems);

/// nullopt, with a problem, where it is not whole.
std::optional<Cost> read_cost(const YamlNode& node, const std::string& key, Problems& problems);

Measure read_measure(const YamlNode& node, const std::string& key, Problems& problems);

/// The hardware file that `text` names: hardware/NAME.yaml beside the configuration `config_path`, or a path, relative
/// to the configuration's directory or else to the current one.
std::optional<Hardware> read_hardware(const std::string& text, const Place& place, const std::string& config_path,
                                      Problems& problems);

/// The sections that set variables; each may be absent.
struct VariableSections {
  const YamlNode *baseline = nullptr, *sweep = nullptr, *combine = nullptr, *ladder = nullptr;
};
/// The settings of the baseline, one Change per value of `sweep` that is not the baseline's, one per map of `combine`,
/// and for every fix of `ladder` one alone and one with the fixes before it.
void read_variables(const VariableSections& sections, Experiment& experiment, Problems& problems);

}  // namespace harness::config
