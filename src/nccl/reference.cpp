#include "nccl/reference.h"

#include <algorithm>

namespace harness::nccl {
namespace {

constexpr bool read = true, not_read = false;
constexpr auto per_process = ReadWhen::process, per_communicator = ReadWhen::communicator;

std::vector<Entry> algorithm_entries() {
  return {
      {"NCCL_ALGO", read,
       "allows only the algorithms that it names: Tree, Ring, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT; a "
       "function may stand before them, as in allreduce:tree",
       "NCCL chooses by its model of time for each size", "NCCL_DEBUG_SUBSYS=TUNING names the algorithm of each call",
       per_communicator,
       "a list turns off all that it leaves out: Tree turns off SHARP (CollNet) and NVLS, and since 2.24 the "
       "functions that have no tree fail"},
      {"NCCL_PROTO", read, "allows only the protocols that it names: LL, LL128, Simple",
       "NCCL chooses; LL128 only where the hardware allows it", "NCCL_DEBUG_SUBSYS=TUNING names the protocol",
       per_communicator, "LL128 forced on hardware that NCCL does not choose it for can corrupt data"},
      {"NCCL_NVLS_ENABLE", read,
       "reduction in the NVLink switches (NVLink SHARP): 0 off, 1 on or fail, 2 where it works", "2",
       "the log says `NVLS multicast support is available`; TUNING names NVLS", per_process, ""},
      {"NCCL_COLLNET_ENABLE", read,
       "reduction in the network's switches (SHARP): 1 on. It also needs a plug-in with CollNet (nccl-rdma-sharp of "
       "HPC-X), an aggregation manager in the fabric and two nodes",
       "0", "the log says `via COLLNET/SHARP`, and TUNING names CollNetDirect or CollNetChain", per_communicator,
       "an NCCL_ALGO without CollNet turns it off"},
      {"NCCL_SHARP_ENABLE", not_read,
       "NCCL has never had it. SHARP of the network is NCCL_COLLNET_ENABLE=1 with a CollNet plug-in; that of NVLink "
       "is NCCL_NVLS_ENABLE and on without being asked",
       "", "", per_process, ""}};
}

std::vector<Entry> path_entries() {
  return {
      {"NCCL_P2P_DISABLE", read, "1: GPUs of a node do not copy to each other directly", "0",
       "the log shows `via P2P` where they do, `via SHM` where they do not", per_process, "for debugging only"},
      {"NCCL_P2P_LEVEL", read,
       "how far apart GPUs may be and still copy directly: LOC NVL NVB C2C PIX PXB P2C PXN PHB SYS", "PXB",
       "the log's `via P2P` lines", per_process, "another word is silently ignored"},
      {"NCCL_SHM_DISABLE", read, "1: no shared memory between processes of a node", "0", "the log has no `via SHM`",
       per_process, "for debugging only"},
      {"NCCL_NET_GDR_LEVEL", read,
       "how far apart GPU and adapter may be and still use GPUDirect RDMA: the words of NCCL_P2P_LEVEL",
       "PXB; P2C where the processor is linked by NVLink", "the log's `via NET` lines end with /GDRDMA", per_process,
       "numbers follow an old scale: 5 is SYS, across processors, and seldom what is meant; another word is silently "
       "ignored"},
      {"NCCL_NET_GDR_READ", read, "1: the adapter also reads what it sends from the GPU's memory; 0: only writes",
       "by the GPU", "the sending `via NET` lines end with /GDRDMA", per_process, ""},
      {"NCCL_DMABUF_ENABLE", read, "0: GPUDirect RDMA without dma-buf, by nvidia_peermem alone", "1 since 2.13.4",
       "the log says `DMA-BUF is available`", per_process, "for debugging only"},
      {"NCCL_CUMEM_ENABLE", read, "0: no memory by cuMem, which NVLS and symmetric memory need", "by the driver",
       "the log shows `P2P/CUMEM` where it is used", per_process, "for debugging only"},
      {"NCCL_CROSS_NIC", read, "whether a ring may leave by one rail and enter by another: 0 no, 1 yes, 2 as it fits",
       "2", "the log's rings and `via NET` lines", per_process, ""},
      {"NCCL_PXN_DISABLE", read, "1: a GPU does not reach a far adapter through another GPU", "0",
       "the log's `via NET` lines name the other GPU's rank in brackets where it does", per_process, ""}};
}

std::vector<Entry> network_entries() {
  return {
      {"NCCL_NET", read, "the network by name: IB, Socket or a plug-in's", "the first that works: plug-in, IB, Socket",
       "the log says `Using network`", per_communicator, "Socket leaves RDMA out"},
      {"NCCL_IB_DISABLE", read, "1: no InfiniBand and no RoCE", "0", "the log says `Using network`", per_process,
       "for debugging only"},
      {"NCCL_IB_HCA", read, "which adapters: [^][=]name[:port],…; ^ all but these, = whole names",
       "all that are active", "the log's `NET/IB : Using` line", per_process,
       "names are prefixes without =: mlx5_1 is mlx5_10 too; if none fits, NCCL silently uses sockets"},
      {"NCCL_IB_GID_INDEX", read, "which address of a port RoCE uses", "-1: found by NCCL, since 2.21",
       "NCCL_DEBUG_SUBSYS=NET names the GID", per_process,
       "without effect on InfiniBand; a number that one node has otherwise does not connect"},
      {"NCCL_IB_TC", read, "the traffic class of RoCE and InfiniBand packets", "0",
       "the switches' counters of priorities", per_process, "must be the class that the switches do not drop"},
      {"NCCL_IB_QPS_PER_CONNECTION", read, "queue pairs of a connection: more spread it over more paths", "1",
       "NCCL_DEBUG_SUBSYS=NET names them", per_process, ""},
      {"NCCL_IB_TIMEOUT", read, "how long an adapter waits for an acknowledgement: 4.096 us * 2^N", "20",
       "the ENV lines of the log", per_process, ""},
      {"NCCL_SOCKET_IFNAME", read, "which network interfaces sockets and the first contact use: [^][=]name,…",
       "ib*, else one that is no docker and no lo", "the log's `Bootstrap : Using` line", per_process,
       "names are prefixes; if none fits, NCCL does not start"},
      {"NCCL_SOCKET_NTHREADS", read, "CPU threads of a socket connection", "by the cloud", "the log's NET/Socket lines",
       per_process, "without effect on InfiniBand and RoCE"},
      {"NCCL_NSOCKS_PERTHREAD", read, "sockets of each of these threads", "by the cloud", "the log's NET/Socket lines",
       per_process, "without effect on InfiniBand and RoCE"}};
}

std::vector<Entry> resource_entries() {
  return {{"NCCL_MIN_NCHANNELS", read, "at least so many channels; NCCL_MIN_CTAS replaces it", "by the topology",
           "the log's `coll channels` line", per_process, ""},
          {"NCCL_MAX_NCHANNELS", read, "at most so many channels; NCCL_MAX_CTAS replaces it", "by the topology",
           "the log's `coll channels` line", per_process, "few channels cannot fill fast links"},
          {"NCCL_MIN_CTAS", read, "at least so many thread blocks of a collective", "1",
           "the log's `coll channels` line", per_process, ""},
          {"NCCL_MAX_CTAS", read, "at most so many thread blocks of a collective: SMs that it may take", "64",
           "the log's `coll channels` line", per_process, ""},
          {"NCCL_BUFFSIZE", read, "bytes of a channel's buffer", "4194304", "the ENV lines of the log", per_process,
           "a plain number: 4M is read as 4; no power of two can give wrong results"},
          {"NCCL_NTHREADS", read, "threads of a block: 64, 128, 256 or 512", "512", "the ENV lines of the log",
           per_process, "others can give wrong results"}};
}

std::vector<Entry> file_entries() {
  return {{"NCCL_DEBUG", read, "what NCCL logs: VERSION, WARN, INFO, TRACE", "nothing", "the log", per_process,
           "INFO and TRACE slow a program down; another word logs nothing"},
          {"NCCL_DEBUG_SUBSYS", read, "which parts log at INFO: INIT, NET, GRAPH, TUNING, ENV, …; ^ all but these",
           "INIT,BOOTSTRAP,ENV", "the log", per_process, "without effect unless NCCL_DEBUG is INFO or TRACE"},
          {"NCCL_DEBUG_FILE", read, "where the log goes; %h host, %p process", "the standard output", "the file",
           per_process, "without %h.%p all ranks write over each other"},
          {"NCCL_TOPO_FILE", read, "a description of the machine instead of what /sys shows",
           "/var/run/nvidia-topologyd/virtualTopology.xml if it is there", "the log says `Loading topology file`",
           per_communicator, "a file that is not there is silently passed over"},
          {"NCCL_GRAPH_FILE", read, "rings and trees instead of those that NCCL finds", "NCCL finds them",
           "NCCL_GRAPH_DUMP_FILE", per_communicator, "for debugging only"},
          {"NCCL_CONF_FILE", read, "a file of NAME=value lines, read before /etc/nccl.conf", "~/.nccl.conf",
           "the ENV lines of the log", per_process, "the environment wins over it; nothing shows that it is there"},
          {"NCCL_NET_PLUGIN", read, "the network plug-in's library: libnccl-net-NAME.so",
           "libnccl-net.so if it is there", "the log says `NET/Plugin: Loaded`", per_process, "none: no plug-in"},
          {"NCCL_LAUNCH_MODE", read, "how a process that drives several GPUs starts kernels: PARALLEL or GROUP",
           "PARALLEL", "the ENV lines of the log", per_communicator, "for debugging only"},
          {"NCCL_CHECKS_DISABLE", read, "deprecated since 2.2.12: NCCL_CHECK_POINTERS has taken its place", "1",
           "the ENV lines of the log", per_process, ""}};
}

}  // namespace

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = [] {
    std::vector<Entry> together;
    for (const auto& family :
         {algorithm_entries(), path_entries(), network_entries(), resource_entries(), file_entries()}) {
      together.insert(together.end(), family.begin(), family.end());
    }
    return together;
  }();
  return all;
}

const Entry* find_entry(std::string_view name) {
  const auto at = std::ranges::find(entries(), name, &Entry::name);
  return at == entries().end() ? nullptr : &*at;
}

}  // namespace harness::nccl
