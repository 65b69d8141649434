#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/experiment.h"
#include "plan/plan.h"
#include "store/result.h"
#include "sweep/recorder.h"

namespace harness::sweep {

/// The Result before any measurement: cases, blocks in order, configuration.
store::Result planned_result(const plan::Plan& plan);

/// Adds the record of doctor. A finding about a case becomes a note on the case, too.
void add_record(store::Result& result, const store::DoctorRecord& doctor);

/// A block of the schedule before it is measured; the `index`-th of its file, and in workers of its own.
store::ResultBlock pending_block(const plan::Slot& slot);

/// At least as many bytes as the result of this plan can have, but for what doctor finds: known before anything runs,
/// with as many steps as `steps: auto` may choose, and with the whole timelines of every case. Throws Error if
/// `timeline: all` would keep more intervals than a reader can hold.
std::int64_t needed_space(const plan::Plan& plan);

// Called before the first block, so that no result can influence the decision.

/// The timed steps of a block with `steps: auto`, where a block takes `set_up_s` and a step `step_s`.
int auto_steps(double set_up_s, double step_s, int warmup_steps);
/// With `steps: auto`: as many timed steps as take three quarters of the time that a block of the baseline spends on
/// its set-up and warm-up. Shorter blocks waste the machine on set-up, longer ones leave too few of them to follow its
/// drift (docs/method.md, "Looks").
void decide_steps(Recorder& recorder, config::Measure& measure);
inline constexpr int most_auto_steps = 1000;
/// Reduces the rounds to what the time budget leaves after `spent_s` of preparation. A sweep that ends when all is
/// settled keeps its rounds: the clock ends it. Throws Error if too few rounds are left for any verdict.
void decide_rounds(Recorder& recorder, const config::Measure& measure, double spent_s);

}  // namespace harness::sweep
