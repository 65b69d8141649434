#include "analysis/case_settings.h"

#include "base/error.h"
#include "config/registry.h"

namespace harness::analysis {

config::Settings settings_of(const store::Result& result, const store::ResultCase& of) {
  config::Settings settings;
  for (const config::Variable& variable : config::registry()) {
    const std::string_view text = result.setting(of, variable.name);
    if (text.empty()) continue;
    try {
      variable.parse(settings, text);
    } catch (const Error&) {
      continue;  // parse() has changed nothing
    }
  }
  return settings;
}

}  // namespace harness::analysis
