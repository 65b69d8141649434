#include "doctor/plug_in_variables.h"

#include <algorithm>

#include "doctor/docs.h"

namespace harness::doctor {

const std::vector<PlugInVariables>& all_plug_in_variables() {
  static const std::vector<PlugInVariables> all{
      {"OFI_NCCL_", "aws-ofi-nccl, NCCL's plug-in for EFA and other networks of libfabric",
       "how the plug-in sends (OFI_NCCL_PROTOCOL), which adapters it takes, its limits for sizes",
       "NCCL's log says `NET/OFI` and `Using network AWS Libfabric` or `Libfabric`",
       "NCCL itself ignores them: without the plug-in they do nothing (check nccl.plugin)", docs::ofi},
      {"FI_", "libfabric, below aws-ofi-nccl; MPI may use it, too",
       "which provider (FI_PROVIDER), and how that one works (FI_EFA_…)",
       "FI_LOG_LEVEL=info, or `fi_info -p efa` on the node",
       "recent versions of aws-ofi-nccl choose these themselves; what old instructions set may do harm today",
       docs::libfabric},
      {"NCCL_SHARP_", "nccl-rdma-sharp-plugins, NCCL's plug-in for CollNet from HPC-X",
       "when and with which groups the plug-in uses SHARP (NCCL_SHARP_DISABLE, NCCL_SHARP_GROUP_SIZE_THRESH)",
       "NCCL's log says `SHARP rank … initialized` and `via COLLNET/SHARP`",
       "NCCL asks the plug-in only with NCCL_COLLNET_ENABLE=1", docs::sharp_plug_in},
      {"SHARP_COLL_", "libsharp_coll, the library of NVIDIA SHARP below nccl-rdma-sharp-plugins and HCOLL",
       "how the library takes resources of the switches, and its log (SHARP_COLL_LOG_LEVEL)",
       "SHARP_COLL_LOG_LEVEL=3 makes it say what it joined",
       "they do not turn SHARP on: for NCCL that is NCCL_COLLNET_ENABLE=1, for MPI HCOLL_ENABLE_SHARP", docs::sharp},
      {"SHARP_", "the libraries of NVIDIA SHARP", "how they reach the aggregation manager, and their log",
       "SHARP_COLL_LOG_LEVEL=3 makes them say what they joined",
       "they do not turn SHARP on: for NCCL that is NCCL_COLLNET_ENABLE=1", docs::sharp},
      {"HCOLL_", "HCOLL, MPI's collectives of HPC-X", "collectives of MPI", "HCOLL_VERBOSE", "NCCL ignores them",
       docs::sharp},
      {"NCCL_UCX_", "nccl-rdma-sharp-plugins, where NCCL's network is UCX (NCCL_PLUGIN_P2P=ucx)",
       "which devices and transports UCX takes for NCCL", "NCCL's log says `Using network UCX`",
       "without that plug-in they do nothing", docs::sharp_plug_in},
      {"UCX_", "UCX, below MPI", "transports (UCX_TLS) and devices (UCX_NET_DEVICES) of MPI",
       "`ucx_info -c`, UCX_LOG_LEVEL=info",
       "NCCL ignores them unless its network is UCX; for NCCL's adapters it is NCCL_IB_HCA", docs::ucx},
      {"NCCL_IBEXT_", "nccl-rdma-sharp-plugins, where it is NCCL's network (IBext)",
       "whether it offers that network (NCCL_IBEXT_DISABLE)", "NCCL's log says `Using network IBext`",
       "without that plug-in they do nothing", docs::sharp_plug_in},
      {"NCCL_PLUGIN_", "nccl-rdma-sharp-plugins", "which network it offers to NCCL: NCCL_PLUGIN_P2P=ib, ucx",
       "NCCL's log says `Using network IBext` or `UCX`", "without that plug-in they do nothing", docs::sharp_plug_in},
      {"NCCL_FASTRAK_", "Google's plug-in for A3 Mega (TCPXO)", "its interfaces, threads and sizes",
       "NCCL's log says `Using network FasTrak`", "on other machines they do nothing", docs::nccl_env},
      {"NCCL_GPUDIRECTTCPX_", "Google's plug-in for A3 High (TCPX)", "its interfaces, threads and sizes",
       "NCCL's log says `Using network GPUDirectTCPX`", "on other machines they do nothing", docs::nccl_env}};
  return all;
}

const PlugInVariables* plug_in_variables(std::string_view name) {
  const auto& all = all_plug_in_variables();
  const auto found =
      std::ranges::find_if(all, [&](const PlugInVariables& one) { return name.starts_with(one.prefix); });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace harness::doctor
