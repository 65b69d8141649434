#pragma once

#include <string>

#include "config/settings.h"
#include "program/layout.h"

namespace harness {

/// The axes along which a collective's ranks stand apart.
AxisSet axes_of(CollectiveOver over);
/// How many take part in one of the collective's groups.
int members_of(CollectiveOver over, const Layout& layout);
/// The bytes of one element of a workload's buffers.
std::int64_t element_bytes(const Settings& settings);

/// Why the operation of a workload other than gpt cannot be had under this layout, "" if it can.
std::string check_point(const Settings& settings, const Layout& layout);

}  // namespace harness
