#include "doctor/explain.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "config/registry.h"
#include "doctor/docs.h"
#include "nccl/names.h"

namespace harness::doctor {
namespace {

std::string line(std::string_view label, const std::string& text) {
  return text.empty() ? "" : fmt::format("  {:9}  {}\n", label, text);
}

}  // namespace

std::string explain(const std::string& name) {
  const std::string docs = line("docs", docs::nccl_env),
                    by_env = line("sweep", fmt::format("env: {{{}: VALUE}}", name));
  if (const nccl::ForeignName* foreign = nccl::find_foreign_name(name); foreign != nullptr) {
    if (foreign->owner.empty())
      return fmt::format("{}\n", name) + line("read", "never") + line("instead", std::string(foreign->note)) + docs;
    const std::string about = foreign->is_prefix() ? fmt::format("names that begin with {}: ", foreign->name) : "";
    return fmt::format("{}\n", name) + line("read", fmt::format("not by NCCL, but by {}", foreign->owner)) +
           line("does", fmt::format("{}{}", about, foreign->note)) + by_env;
  }
  if (!nccl::knows(name)) {
    if (!name.starts_with("NCCL_"))
      fail("{} is no variable of NCCL, nor of what is known to work with it, such as OFI_NCCL_…, FI_…, TORCH_NCCL_…",
           quote(name));
    const std::string near = nccl::nearest_name(name);
    const std::string advice = near.empty() ? "; no name that it knows is near, see the list" : did_you_mean(near);
    return fmt::format("{}\n", name) + line("read", "never: NCCL does not know this name and ignores it" + advice) +
           docs;
  }
  const auto rows = config::registry();
  const auto row = std::ranges::find(rows, name, &config::Variable::environment_name);
  const bool swept = row != rows.end();
  return name + "\n" + line("read", "by NCCL") + line("does", swept ? row->help : "") +
         line("value", nccl::reads_integer(name)
                           ? "a plain whole number; of anything else NCCL takes what it begins with"
                           : "") +
         (swept ? line("sweep", fmt::format("{}: {}", row->name, row->allowed)) : by_env) + docs;
}

}  // namespace harness::doctor
