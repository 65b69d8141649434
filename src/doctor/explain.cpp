#include "doctor/explain.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "doctor/docs.h"
#include "nccl/foreign_names.h"
#include "nccl/names.h"
#include "nccl/reference.h"
#include "nccl/variables.h"

namespace harness::doctor {
namespace {

std::string line(std::string_view label, const std::string& text) {
  return text.empty() ? "" : fmt::format("  {:9}  {}\n", label, text);
}

// How a sweep sets it.
std::string in_a_sweep(const std::string& name) {
  const auto rows = nccl::variables();
  const auto row = std::ranges::find(rows, name, &nccl::VariableRow::environment_name);
  return row == rows.end() ? fmt::format("as env: {{{}: VALUE}}", name)
                           : fmt::format("{}: {}", row->name, row->allowed);
}

}  // namespace

std::string explain(const std::string& name) {
  const nccl::Entry* entry = nccl::find_entry(name);
  if (const nccl::ForeignName* foreign = nccl::find_foreign_name(name); entry == nullptr && foreign != nullptr) {
    const std::string about = foreign->is_prefix() ? fmt::format("names that begin with {}: ", foreign->name) : "";
    return fmt::format("{}\n", name) + line("read", fmt::format("not by NCCL, but by {}", foreign->owner)) +
           line("does", fmt::format("{}{}", about, foreign->note)) + line("sweep", in_a_sweep(name));
  }
  if (entry == nullptr && !nccl::knows(name)) {
    if (!name.starts_with("NCCL_"))
      fail("{} is no variable of NCCL, nor of what is known to work with it, such as OFI_NCCL_…, FI_…, TORCH_NCCL_…",
           quote(name));
    const std::string near = nccl::nearest_name(name);
    const std::string advice = near.empty() ? "; no name that it knows is near, see the list" : did_you_mean(near);
    return fmt::format("{}\n", name) + line("read", "never: NCCL does not know this name and ignores it" + advice) +
           line("docs", docs::nccl_env);
  }
  if (entry != nullptr && !entry->is_read) {
    return fmt::format("{}\n", name) + line("read", "never") + line("instead", entry->what) +
           line("docs", docs::nccl_env);
  }
  const bool each = entry != nullptr && entry->when == nccl::ReadWhen::communicator;
  std::string out = name + "\n";
  if (entry != nullptr) out += line("does", entry->what);
  if (entry != nullptr || nccl::reads_integer(name)) {
    out += line("read",
                each ? "whenever a communicator is made" : "once in the life of a process: set it before the start");
  }
  if (nccl::reads_integer(name))
    out += line("value", "a plain whole number; of anything else NCCL takes what it begins with");
  if (entry != nullptr) {
    out += line("default", entry->fallback) + line("verify", entry->verify) + line("beware", entry->caution);
  }
  return out + line("sweep", in_a_sweep(name)) + line("docs", docs::nccl_env);
}

}  // namespace harness::doctor
