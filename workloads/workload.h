#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "config/settings.h"
#include "program/memory.h"
#include "program/program.h"
#include "workloads/operations.h"

namespace harness {

/// The Programs of every role of the workload that the settings name: a GPT training step (workloads/gpt.h), which
/// alone looks at the model, or one operation (workloads/operations.h). Pure.
ProgramSet build_programs(const Model& model, const Settings& settings, const Layout& layout);
/// The Program of one role alone: what a worker builds.
Program build_role(const Model& model, const Settings& settings, const Layout& layout, int role);

/// What fills the inputs of a step.
std::unique_ptr<InputSource> make_inputs(const Model& model, const Settings& settings, const Layout& layout,
                                         const Coordinates& at, std::uint64_t seed);

/// nullptr where a step has nothing that could be checked alone (gpt: its loss is).
std::unique_ptr<OutputCheck> make_output_check(const Settings& settings, const Layout& layout, const Coordinates& at,
                                               const Program& program);

}  // namespace harness
