#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/cost.h"
#include "config/experiment.h"
#include "config/fields.h"
#include "config/yaml_tree.h"

namespace harness::config {

// The parts of a configuration, a source file each. What is wrong is added to `problems`, and reading goes on. Fields
// write into what they are given, which must outlive them.

/// A preset's name, a map of all five numbers, or a map with `preset` and the numbers that differ from it. `given`:
/// what stands in the configuration, or nullptr.
Field model_field(const YamlNode* given, Model& model, Problems& problems);

std::vector<Field> cost_fields(Cost& cost);

Field faults_field(Faults& faults, Problems& problems);

Field measure_field(Measure& measure, Problems& problems);

/// The hardware file that `text` names: hardware/NAME.yaml beside the configuration `config_path`, or a path, relative
/// to the configuration's directory or else to the current one.
std::optional<Hardware> read_hardware(const std::string& text, const Place& place, const std::string& config_path,
                                      Problems& problems);

/// Reads baseline, sweep, combine and ladder of a configuration: the settings of the baseline, one Change per value of
/// `sweep` that is not the baseline's, one per map of `combine`, and for every fix of `ladder` one alone and one with
/// the fixes before it.
void read_variables(const YamlNode& root, Experiment& experiment, Problems& problems);

}  // namespace harness::config
