#pragma once

#include <span>
#include <string>
#include <string_view>

namespace harness::nccl {

// Who reads an environment variable that looks like NCCL's: NCCL itself (2.18 to 2.30), other software, or nobody. NCCL
// ignores a name that it does not know, so a slip in one measures nothing.

/// Whether NCCL reads it by strtoll(), whatever it says: "NCCL_LL_BUFFSIZE".
bool reads_integer(std::string_view name);
/// Whether NCCL itself reads it.
bool knows(std::string_view name);
/// The known name nearest to it, "" if none is near.
std::string nearest_name(std::string_view name);

/// A name that NCCL ignores and that is nevertheless no slip.
struct ForeignName {
  std::string_view name;   // "NCCL_VERSION", or how names begin: "NCCL_FASTRAK_"
  std::string_view owner;  // the software that reads or sets it: "PyTorch"; "": nobody, and `note` says what to set
  std::string_view note;   // its purpose and what to know about it, without a full stop

  /// A name that ends with '_' stands for all names that begin with it.
  bool is_prefix() const { return name.ends_with('_'); }
};

/// The row with this very name, else the row with the longest prefix of it; nullptr if no row fits and for a name that
/// NCCL reads itself (NCCL_TUNER_PLUGIN, although tuner plug-ins read NCCL_TUNER_…).
const ForeignName* find_foreign_name(std::string_view name);
std::span<const ForeignName> foreign_names();

}  // namespace harness::nccl
