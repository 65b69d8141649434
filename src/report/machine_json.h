#pragma once

#include <nlohmann/json_fwd.hpp>

#include "store/result.h"

namespace harness::report {

/// The course of the machine's level and what else the machine did, block by block; null without a level.
nlohmann::ordered_json machine_json(const store::Result& result);

}  // namespace harness::report
