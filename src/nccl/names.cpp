#include <algorithm>
#include <array>

#include "base/text.h"
#include "nccl/values.h"

namespace harness::nccl {
namespace {

constexpr std::string_view prefix = "NCCL_";

// The integers without their prefix, sorted: every NCCL_PARAM of the sources of 2.18.6, 2.24.3, 2.28.9 and 2.30.7.
// clang-format off
constexpr std::array<std::string_view, 209> integers{{
    "AGG_CHANNEL_SIZE", "ALLGATHERV_ENABLE", "ALLOC_P2P_NET_LL_BUFFERS", "BUFFSIZE", "CGA_CLUSTER_SIZE",
    "CHECK_POINTERS", "CHUNK_SIZE", "COLLNET_ENABLE", "COLLNET_NODE_THRESHOLD", "COMM_BLOCKING",
    "COMM_SHRINK_SHARE_RESOURCES", "COMM_SPLIT_SHARE_RESOURCES", "CONNECT_ROUND_MAX_PEERS", "CREATE_THREAD_CONTEXT",
    "CROSS_NIC", "CTA_POLICY", "CUMEM_ENABLE", "CUMEM_HOST_ENABLE", "DEV_API_JIT", "DISABLE_MEM_MANAGER",
    "DMABUF_ENABLE", "ELASTIC_BUFFER_REGISTER", "ENABLE_VERSION_CHECK", "GDAKI_USE_RELIABLE_DB", "GDRCOPY_ENABLE",
    "GDRCOPY_FIFO_ENABLE", "GDRCOPY_FLUSH_ENABLE", "GDRCOPY_SYNC_ENABLE", "GDR_FLUSH_DISABLE",
    "GIN_COUNTER_POOL_SIZE", "GIN_ENABLE", "GIN_ERROR_QUERY_SEC", "GIN_GDAKI_MAX_DEST_RD_ATOMIC",
    "GIN_GDAKI_MAX_QP_RD_ATOMIC", "GIN_GDAKI_NIC_HANDLER", "GIN_GDAKI_QP_DEPTH", "GIN_IB_TC", "GIN_NCONNECTIONS",
    "GIN_NCONTEXTS", "GIN_PLUGIN_REF_COUNT", "GIN_PROXY_QUEUE_SIZE", "GIN_SIGNAL_POOL_SIZE", "GIN_TYPE",
    "GRAPH_DUMP_FILE_RANK", "GRAPH_HELPER_DISABLE", "GRAPH_MIXING_SUPPORT", "GRAPH_REGISTER", "GRAPH_STREAM_ORDERING",
    "GROUP_CUDA_STREAM", "IB_ADAPTIVE_ROUTING", "IB_AR_THRESHOLD", "IB_DATA_DIRECT", "IB_DEVICE_PCI_ORDER",
    "IB_DISABLE", "IB_ECE_ENABLE", "IB_FIFO_TC", "IB_GID_INDEX", "IB_MERGE_NICS", "IB_MERGE_VFS", "IB_MQP_RETRY_ALL",
    "IB_MQP_RETRY_CNT", "IB_MQP_RETRY_SLEEP_MSEC", "IB_OOO_RQ", "IB_PCI_RELAXED_ORDERING", "IB_PKEY",
    "IB_PREPOST_RECEIVE_WORK_REQUESTS", "IB_QPS_PER_CONNECTION", "IB_QUERY_PORT_SPEED",
    "IB_RECEIVER_SIDE_MATCHING_SCHEME", "IB_RESILIENCY_PORT_FAILOVER", "IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS",
    "IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY", "IB_RESILIENCY_PORT_RECOVERY",
    "IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT", "IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL",
    "IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE", "IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE",
    "IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT", "IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX",
    "IB_RESILIENCY_PORT_RECOVERY_START_DELAY", "IB_RETRY_CNT", "IB_RETURN_ASYNC_EVENTS", "IB_ROCE_VERSION_NUM",
    "IB_ROUTABLE_FLID_GID_INDEX", "IB_SL", "IB_SPLIT_DATA_ON_QPS", "IB_SUBNET_AWARE_ROUTING", "IB_SUBNET_PREFIX_LEN",
    "IB_TC", "IB_TIMEOUT", "IB_USE_INLINE", "IB_WARN_RAIL_LOCAL", "IGNORE_COLLNET_MISMATCH", "IGNORE_CPU_AFFINITY",
    "IGNORE_DISABLED_P2P", "IGNORE_NET_MISMATCH", "IPC_USE_ABSTRACT_SOCKET", "L1_SHARED_MEMORY_CARVEOUT",
    "LAUNCH_ORDER_IMPLICIT", "LAUNCH_RACE_FATAL", "LEGACY_CUDA_REGISTER", "LL128_BUFFSIZE", "LL128_C2C",
    "LL128_NTHREADS", "LL_BUFFSIZE", "LOCAL_REGISTER", "LSA_TEAM_SIZE", "MAX_CTAS", "MAX_NCHANNELS", "MAX_NRINGS",
    "MAX_P2P_NCHANNELS", "MEM_SYNC_DOMAIN", "MIN_CTAS", "MIN_NCHANNELS", "MIN_NRINGS", "MIN_P2P_NCHANNELS",
    "MLOPART_RDMA_ENABLE", "MNNVL_CLIQUE_ID", "MNNVL_CROSS_CLIQUE", "MNNVL_ENABLE", "MNNVL_RAIL_PER_HOST",
    "MNNVL_SCATTER_NETS_ENABLE", "MNNVL_UUID", "MULTI_RANK_GPU_ENABLE", "MULTI_SEGMENT_REGISTER",
    "NCHANNELS_PER_NET_PEER", "NET_DISABLE_INTRA", "NET_FORCE_FLUSH", "NET_GDR_C2C", "NET_GDR_MLOPART",
    "NET_GDR_READ", "NET_OPTIONAL_RECV_COMPLETION", "NET_OVERHEAD", "NET_PLUGIN_REF_COUNT", "NET_SHARED_BUFFERS",
    "NET_SHARED_COMMS", "NSOCKS_PERTHREAD", "NTHREADS", "NUM_RMA_CTX", "NVB_DISABLE", "NVB_PRECONNECT",
    "NVLINK_UTIL_CENTRIC_SCHED_ENABLE", "NVLSTREE_MAX_CHUNKSIZE", "NVLS_CHUNKSIZE", "NVLS_ENABLE", "NVLS_NCHANNELS",
    "NVTX_DISABLE", "OOB_NET_ENABLE", "P2P_DIRECT_DISABLE", "P2P_DISABLE", "P2P_EPOCH_ENABLE", "P2P_LL_THRESHOLD",
    "P2P_MAX_PEERS", "P2P_NET_CHUNKSIZE", "P2P_NVL_CHUNKSIZE", "P2P_PCI_CHUNKSIZE", "P2P_PER_CHANNEL_NET_BW",
    "P2P_PXN_LEVEL", "P2P_READ_ENABLE", "P2P_SCHEDULE_GROUP_SIZE", "P2P_USE_CUDA_MEMCPY", "PAT_ENABLE",
    "PROGRESS_APPENDOP_FREQ", "PROXY_APPEND_BATCH_SIZE", "PROXY_DUMP_SIGNAL", "PXN_C2C", "PXN_DISABLE", "RAS_ENABLE",
    "RAS_TIMEOUT_FACTOR", "REPORT_CONNECT_PROGRESS", "RMA_DISABLE", "RMA_PLUGIN_REF_COUNT", "RMA_PROXY_DUMP_SIGNAL",
    "RMA_PROXY_QUEUE_SIZE", "RUNTIME_CONNECT", "SET_CPU_STACK_SIZE", "SET_STACK_SIZE", "SET_THREAD_NAME",
    "SHADOW_MEMPOOL_MAX_SIZE", "SHM_DISABLE", "SHM_LOCALITY", "SHM_MEMCPY_MODE", "SHM_USE_CUDA_MEMCPY",
    "SINGLE_PROC_MEM_REG_ENABLE", "SOCKET_INLINE", "SOCKET_MIN_TASKSIZE", "SOCKET_NTHREADS",
    "SOCKET_POLL_TIMEOUT_MSEC", "SOCKET_RCVBUF", "SOCKET_RETRY_CNT", "SOCKET_RETRY_SLEEP_MSEC", "SOCKET_SNDBUF",
    "SYM_CE_THRESHOLD", "SYM_CTAS", "SYM_GIN_KERNELS_ENABLE", "SYM_NOWIN_ENABLE", "SYM_REUSE_SYSMEM_HANDLES",
    "SYM_RS_GIN_CHUNK_SIZE", "SYM_TMA_ENABLE", "TOPO_DUMP_FILE_RANK", "TOPO_SPLIT_MLOPART", "UID_STAGGER_RATE",
    "UID_STAGGER_THRESHOLD", "UNPACK_DOUBLE_NCHANNELS", "WIN_ENABLE", "WIN_STRIDE", "WORK_ARGS_BYTES",
    "WORK_FIFO_BYTES", "WORK_FIFO_DEPTH",
}};
// Other names in those sources or in NVIDIA's list of environment variables: words, lists and paths.
constexpr std::array<std::string_view, 47> texts{{
    "ALGO", "CHECKS_DISABLE", "CHECK_MODE", "COMM_ID", "CONF_FILE", "DEBUG", "DEBUG_FILE", "DEBUG_SUBSYS",
    "DEBUG_TIMESTAMP_FORMAT", "DEBUG_TIMESTAMP_LEVELS", "ENV_PLUGIN", "GIN_PLUGIN", "GRAPH_DUMP_FILE", "GRAPH_FILE",
    "HOSTID", "IBVERBS_LIB", "IB_ADDR_FAMILY", "IB_ADDR_RANGE", "IB_CUDA_SUPPORT", "IB_HCA", "LAUNCH_MODE",
    "LL_THRESHOLD", "NET", "NETDEVS_POLICY", "NET_FORCE_MERGE", "NET_GDR_LEVEL", "NET_MERGE_LEVEL",
    "NET_MERGE_POLICY", "NET_PLUGIN", "NO_CACHE", "OOB_NET_IFNAME", "P2P_LEVEL", "PROFILER_PLUGIN", "PROTO",
    "PROXY_CPUSET", "RAS_ADDR", "RMA_PLUGIN", "SINGLE_RING_THRESHOLD", "SOCKET_FAMILY", "SOCKET_IFNAME",
    "SOCKET_MAGIC", "SYM_KERNEL", "THREAD_THRESHOLDS", "TOPO_DUMP_FILE", "TOPO_FILE", "TREE_THRESHOLD",
    "TUNER_PLUGIN",
}};
// clang-format on
static_assert(std::ranges::is_sorted(integers) && std::ranges::is_sorted(texts));

bool has(std::span<const std::string_view> names, std::string_view name) {
  return name.starts_with(prefix) && std::ranges::binary_search(names, name.substr(prefix.size()));
}

constexpr std::string_view pytorch = "PyTorch", images = "container images",
                           sharp_plug_in = "the plug-in nccl-rdma-sharp-plugins (HPC-X)",
                           ofi_plug_in = "the plug-in aws-ofi-nccl",
                           without_plug_in = "without that plug-in it does nothing";

constexpr std::array foreign = std::to_array<ForeignName>({
    {"NCCL_ASYNC_ERROR_HANDLING NCCL_BLOCKING_WAIT NCCL_DESYNC_DEBUG NCCL_ENABLE_TIMING", pytorch,
     "an old spelling of a variable that is called TORCH_NCCL_… since PyTorch 2.2"},
    {"TORCH_NCCL_", pytorch, "settings of PyTorch's process group: time limits, watchdog, flight recorder"},

    {"NCCL_VERSION", images, "the version that an image was built with; the log says which NCCL runs"},
    {"NV_LIBNCCL_", images, "versions of the packages that an image was built with"},
    {"NCCL_HOME NCCL_ROOT NCCL_ROOT_DIR NCCL_DIR NCCL_PATH NCCL_PREFIX NCCL_INSTALL_PATH NCCL_HDR_PATH NCCL_INC "
     "NCCL_INCLUDE NCCL_INCLUDE_DIR NCCL_INCLUDE_DIRS NCCL_LIB NCCL_LIB_DIR NCCL_LIBRARY NCCL_LIBRARIES "
     "NCCL_LIBRARY_PATH",
     "build systems", "says where NCCL is installed; a running program does not read it"},
    {"NCCL_TESTS_", "nccl-tests", "how its programs split ranks into groups and when they fail"},

    {"OFI_NCCL_", ofi_plug_in,
     "protocol, adapters and sizes on EFA and other networks of libfabric; NCCL's log says "
     "`NET/OFI` where the plug-in runs"},
    {"NCCL_OFI_", ofi_plug_in, "most of its variables begin with OFI_NCCL_"},
    {"FI_", "libfabric", "the library below aws-ofi-nccl and some MPIs: provider and its settings"},
    {"NCCL_SHARP_ENABLE", "",
     "NCCL has never had it. SHARP of the network is NCCL_COLLNET_ENABLE=1 with a CollNet plug-in (nccl-rdma-sharp of "
     "HPC-X); that of NVLink is NCCL_NVLS_ENABLE, which is on without being asked"},
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

bool reads_integer(std::string_view name) {
  return has(integers, name);
}

bool knows(std::string_view name) {
  return has(integers, name) || has(texts, name);
}

std::string nearest_name(std::string_view name) {
  // The common prefix makes all names look alike: compare only the FOO of NCCL_FOO.
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  std::vector<std::string> tails(integers.begin(), integers.end());
  tails.insert(tails.end(), texts.begin(), texts.end());
  const std::string near = nearest(name, tails);
  return near.empty() ? "" : std::string(prefix) + near;
}

std::span<const ForeignName> foreign_names() {
  return foreign;
}

const ForeignName* find_foreign_name(std::string_view name) {
  if (knows(name)) return nullptr;
  const ForeignName* best = nullptr;
  for (const ForeignName& row : foreign) {
    const bool fits = row.is_prefix() && name.starts_with(row.names);
    if (fits && (best == nullptr || row.names.size() > best->names.size())) best = &row;
    const std::vector<std::string_view> names = split(row.names, ' ');
    if (std::ranges::find(names, name) != names.end()) return &row;
  }
  return best;
}

}  // namespace harness::nccl
