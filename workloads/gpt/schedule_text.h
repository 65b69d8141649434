#pragma once

#include <string>

#include "config/settings.h"
#include "workloads/gpt/schedule.h"

namespace harness::gpt {

/// A schedule as text, as figures of papers have it: a line per stage, a column per tick, "F3" where it begins the
/// forward pass of micro-batch 3, "B3" for a backward pass, "I3" and "W3" for the gradients of inputs and of weights
/// where it is split, "F3b" in a second chunk; "." where the stage has nothing to do. At most `columns` characters
/// wide: what does not fit goes on below, and of a long step the middle is left out.
std::string draw(config::PipelineSchedule schedule, const Pipeline& pipeline, int columns = 118);

/// "F3", "B3b": as drawn.
std::string name_of(const Pass& pass, const Pipeline& pipeline);

/// How long the bubble is, of what, and the formula for any times of passes. `timed`: the schedule's timetable().
std::string bubble_text(config::PipelineSchedule schedule, const Pipeline& pipeline,
                        const std::vector<std::vector<TimedPass>>& timed);

}  // namespace harness::gpt
