#pragma once

#include <span>
#include <string_view>

namespace harness::nccl {

// Environment variables that look like NCCL's and that other software reads or sets. NCCL ignores them; that alone does
// not make them a slip.

struct ForeignName {
  std::string_view name;   // "NCCL_VERSION", or how names begin: "NCCL_FASTRAK_"
  std::string_view owner;  // the software that reads or sets it: "PyTorch"
  std::string_view note;   // what it is for and what to know of it, without a full stop

  /// A name that ends with '_' stands for all names that begin with it.
  bool is_prefix() const { return name.ends_with('_'); }
};

/// The row with this very name, else the row with the longest prefix of it; nullptr if no row fits and for a name that
/// NCCL reads itself (NCCL_TUNER_PLUGIN, although tuner plug-ins read NCCL_TUNER_…).
const ForeignName* find_foreign_name(std::string_view name);
std::span<const ForeignName> foreign_names();

}  // namespace harness::nccl
