#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace harness::doctor {

/// Variables that people set for NCCL and that something beside NCCL reads: its plug-ins and what these stand on. Known
/// by how their names begin. From each project's own pages, whose address is `docs`.
struct PlugInVariables {
  std::string prefix;  // "OFI_NCCL_"
  std::string reader;  // who reads them, and where it is from
  std::string what;    // what they are for
  std::string verify;  // how one sees that their reader is there at all
  std::string caution;
  std::string docs;
};

/// nullptr: of none that is known here.
const PlugInVariables* plug_in_variables(std::string_view name);
/// In the order in which they are tried: a longer beginning stands before a shorter one.
const std::vector<PlugInVariables>& all_plug_in_variables();

}  // namespace harness::doctor
