#pragma once

#include <cstdint>

#include "plan/plan.h"
#include "store/result.h"

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

}  // namespace harness::sweep
