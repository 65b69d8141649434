#include "nccl/foreign_names.h"

#include <array>

#include "nccl/names.h"

namespace harness::nccl {
namespace {

constexpr std::string_view pytorch = "PyTorch", images = "container images", builds = "build systems",
                           sharp_plug_in = "the plug-in nccl-rdma-sharp-plugins (HPC-X)",
                           ofi_plug_in = "the plug-in aws-ofi-nccl";
constexpr std::string_view renamed = "an old spelling of a variable that is called TORCH_NCCL_… since PyTorch 2.2",
                           where_nccl_is = "says where NCCL is installed; a running program does not read it",
                           without_plug_in = "without that plug-in it does nothing";

constexpr std::array table = std::to_array<ForeignName>({
    {"NCCL_ASYNC_ERROR_HANDLING", pytorch, renamed},
    {"NCCL_BLOCKING_WAIT", pytorch, renamed},
    {"NCCL_DESYNC_DEBUG", pytorch, renamed},
    {"NCCL_ENABLE_TIMING", pytorch, renamed},
    {"TORCH_NCCL_", pytorch, "settings of PyTorch's process group: time limits, watchdog, flight recorder"},

    {"NCCL_VERSION", images, "the version that an image was built with; the log says which NCCL runs"},
    {"NV_LIBNCCL_", images, "versions of the packages that an image was built with"},
    {"NCCL_HOME", builds, where_nccl_is},
    {"NCCL_ROOT", builds, where_nccl_is},
    {"NCCL_ROOT_DIR", builds, where_nccl_is},
    {"NCCL_DIR", builds, where_nccl_is},
    {"NCCL_PATH", builds, where_nccl_is},
    {"NCCL_PREFIX", builds, where_nccl_is},
    {"NCCL_INSTALL_PATH", builds, where_nccl_is},
    {"NCCL_HDR_PATH", builds, where_nccl_is},
    {"NCCL_INC", builds, where_nccl_is},
    {"NCCL_INCLUDE", builds, where_nccl_is},
    {"NCCL_INCLUDE_DIR", builds, where_nccl_is},
    {"NCCL_INCLUDE_DIRS", builds, where_nccl_is},
    {"NCCL_LIB", builds, where_nccl_is},
    {"NCCL_LIB_DIR", builds, where_nccl_is},
    {"NCCL_LIBRARY", builds, where_nccl_is},
    {"NCCL_LIBRARIES", builds, where_nccl_is},
    {"NCCL_LIBRARY_PATH", builds, where_nccl_is},
    {"NCCL_TESTS_", "nccl-tests", "how its programs split ranks into groups and when they fail"},

    {"OFI_NCCL_", ofi_plug_in,
     "protocol, adapters and sizes on EFA and other networks of libfabric; NCCL's log says "
     "`NET/OFI` where the plug-in runs"},
    {"NCCL_OFI_", ofi_plug_in, "most of its variables begin with OFI_NCCL_"},
    {"FI_", "libfabric", "the library below aws-ofi-nccl and some MPIs: provider and its settings"},
    {"NCCL_SHARP_", sharp_plug_in,
     "when and with which groups it uses SHARP; NCCL asks it only with "
     "NCCL_COLLNET_ENABLE=1"},
    {"NCCL_IBEXT_", sharp_plug_in, without_plug_in},
    {"NCCL_UCX_", sharp_plug_in, "devices and transports where NCCL's network is UCX (NCCL_PLUGIN_P2P=ucx)"},
    {"NCCL_PLUGIN_", sharp_plug_in, "which network it offers to NCCL: NCCL_PLUGIN_P2P=ib or ucx"},
    {"SHARP_", "the libraries of NVIDIA SHARP", "they do not turn SHARP on: for NCCL that is NCCL_COLLNET_ENABLE=1"},
    {"HCOLL_", "HCOLL, MPI's collectives of HPC-X", "they concern MPI alone"},
    {"UCX_", "UCX", "transports and devices of MPI; for NCCL's adapters set NCCL_IB_HCA"},
    {"NCCL_FASTRAK_", "Google's plug-in for A3 Mega (TCPXO)", without_plug_in},
    {"NCCL_GPUDIRECTTCPX_", "Google's plug-in for A3 High (TCPX)", without_plug_in},
    {"NCCL_DYNAMIC_CHUNK_SIZE", "Google's NCCL for A3 High (TCPX)", "NVIDIA's NCCL does not read it"},
    {"NCCL_SHIMNET_", "Google's plug-in gIB for A3 Ultra and A4", without_plug_in},
    {"NCCL_TUNER_", "tuner plug-ins", "where their configuration lies, such as NCCL_TUNER_CONFIG_PATH"},
    {"NCCL_PROFILE_", "profiler plug-ins", "which events they record and where to"},
    {"NCCL_INSPECTOR_", "NCCL's profiler plug-in Inspector", without_plug_in},
});

}  // namespace

std::span<const ForeignName> foreign_names() {
  return table;
}

const ForeignName* find_foreign_name(std::string_view name) {
  if (knows(name)) return nullptr;
  const ForeignName* best = nullptr;
  for (const ForeignName& row : table) {
    if (row.name == name) return &row;
    const bool fits = row.is_prefix() && name.starts_with(row.name);
    if (fits && (best == nullptr || row.name.size() > best->name.size())) best = &row;
  }
  return best;
}

}  // namespace harness::nccl
