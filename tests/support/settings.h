#pragma once

#include <string>
#include <string_view>

#include "base/text.h"
#include "config/registry.h"

namespace harness::test {

/// Sets variables as "recompute=full recompute_layers=1". Values have no blanks.
inline void set(config::Settings& settings, std::string_view changes) {
  for (const std::string_view change : split(changes, ' ')) {
    if (change.empty()) continue;
    const std::size_t equals = change.find('=');
    config::find_variable(std::string(change.substr(0, equals)))->parse(settings, change.substr(equals + 1));
  }
}

}  // namespace harness::test
