#include "doctor/explain.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "config/registry.h"
#include "doctor/docs.h"
#include "nccl/names.h"

namespace harness::doctor {

std::string explain(const std::string& name) {
  const std::string by_env = fmt::format("sweep it with `env: {{{}: VALUE}}`", name);
  if (const nccl::ForeignName* foreign = nccl::find_foreign_name(name); foreign != nullptr) {
    if (foreign->owner.empty()) return fmt::format("{}: read by nobody; {}\n", name, foreign->note);
    const std::string about = foreign->is_prefix() ? fmt::format("names that begin with {}: ", foreign->name) : "";
    return fmt::format("{}: not read by NCCL, but by {} ({}{}); {}\n", name, foreign->owner, about, foreign->note,
                       by_env);
  }
  if (!nccl::knows(name)) {
    if (!name.starts_with("NCCL_"))
      fail("{} is no variable of NCCL, nor of what is known to work with it, such as OFI_NCCL_…, FI_…, TORCH_NCCL_…",
           quote(name));
    const std::string near = nccl::nearest_name(name);
    const std::string advice =
        near.empty() ? fmt::format("; no name that it knows is near ({})", docs::nccl_env) : did_you_mean(near);
    return fmt::format("{}: NCCL does not know this name and ignores it{}\n", name, advice);
  }
  const auto rows = config::registry();
  const auto row = std::ranges::find(rows, name, &config::Variable::environment_name);
  if (row != rows.end())
    return fmt::format("{}: read by NCCL, {}; sweep it with `{}: {}`\n", name, row->help, row->name, row->allowed);
  return fmt::format("{}: read by NCCL{}; {}\n", name, nccl::reads_integer(name) ? " as a plain whole number" : "",
                     by_env);
}

}  // namespace harness::doctor
