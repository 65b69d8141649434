#include <algorithm>
#include <array>

#include "base/text.h"
#include "evidence/nccl_use.h"

// Messages of NCCL 2.7 to 2.30 (src/transport, src/misc, src/bootstrap.cc, src/init.cc). Status numbers are those of
// ibv_wc_status (rdma-core, libibverbs/verbs.h).

namespace harness::evidence {
namespace {

constexpr std::array<NcclWarningKind, 27> kinds{{
    {"status=12", "completion&status=12|completion&error 12|completion&RETRY_EXC", "{host} got no answer from {peer}",
     "look at that node's adapter, cable and switch port first; ib_write_bw between the two; on RoCE "
     "NCCL_IB_GID_INDEX, PFC and routing; NCCL_IB_TIMEOUT=22 only bridges link flaps",
     false, true},
    {"status=5", "completion&status=5 |completion&error 5,|completion&error 5 |completion&WR_FLUSH",
     "{host}: a queue pair was torn down", "an effect of another error: look for the first one", true},
    {"memory access refused",
     "completion&status=4 |completion&status=9 |completion&status=10 |completion&error 4,|completion&error 9,|"
     "completion&error 10,|completion&_ERR(4)|completion&_ERR(9)|completion&_ERR(10)|async fatal event&access",
     "{host}: an adapter may not reach the memory that it was given",
     "GPUDirect RDMA: NCCL_NET_GDR_LEVEL=LOC confirms it; then nvidia-peermem or DMA-BUF, ACS and the IOMMU"},
    {"ibv_modify_qp failed", "ibv_modify_qp|incompatible devices|incompatible with the local",
     "{host}: queue pairs of two adapters cannot be connected",
     "the same NCCL_IB_GID_INDEX on all nodes; NCCL_IB_HCA with the ports of one fabric only; "
     "NCCL_CROSS_NIC=0 if rails do not reach each other"},
    {"adapter not usable", "NET/IB : Unable to open device|mixed local Net device counts",
     "{host}: an adapter that NCCL finds, here or on another node, cannot be used",
     "ibv_devinfo on each node; all of /dev/infiniband/uverbs* in the container; NCCL_IB_HCA with what every node has"},
    {"locked memory limit", "ibv_reg_mr&Cannot allocate memory|ibv_create&Cannot allocate memory",
     "{host}: memory cannot be registered: the locked-memory limit is too low",
     "ulimit -l unlimited inside what the launcher starts (Slurm: LimitMEMLOCK of slurmd)"},
    {"port error", "async event&port error|async fatal event", "{host}: a port of its adapter went down",
     "cable, optic and switch port of that adapter; the kernel log of {host}"},
    {"GID table changed", "GID table change|unknown event type (18)",
     "{host}: a RoCE port flapped or changed its address",
     "link and address of that port; restart the job if status=12 follows"},
    {"collectives differ", "collective mismatch|Message truncated|bytes instead of",
     "ranks call different collectives, sizes or orders ({host})",
     "compare NCCL_* and versions of all ranks; find the first call that differs"},
    {"versions differ", "Mismatched NCCL version|NCCL version mismatch",
     "{host}: ranks load different versions of NCCL", "LD_LIBRARY_PATH and the container of each node"},
    {"no socket interface",
     "no socket interface found|No usable listening interface|NET/Socket : no interface found|No IP interface found|"
     "no device found&IFNAME|connecting to address&with family",
     "{host}: NCCL_SOCKET_IFNAME matches no interface", "unset it, or name an interface that every node has"},
    {"libfabric", "NET/OFI&completed with error|NET/OFI&failed|NET/OFI&Couldn't|NET/OFI&Unable|NET/OFI&provider",
     "{host}: an operation of libfabric (EFA, Slingshot) failed",
     "one release of aws-ofi-nccl and libfabric on all nodes; a security group that lets the nodes reach each other "
     "with every protocol; FI_LOG_LEVEL=warn says more"},
    {"no network", "Error: network&not found|Failed to initialize any NET plugin",
     "{host}: the network that NCCL_NET asks for is not there",
     "its plug-in (libnccl-net*.so) on LD_LIBRARY_PATH of what the launcher starts; of IB, libibverbs and "
     "/dev/infiniband in the container; without NCCL_NET, NCCL takes what it finds"},
    {"connect failed",
     "onnect to&failed|onnect to&onnection refused|No route to host|exceeded retries|exceeded error retry|"
     "exceeded timeouts|onnect to&timed out",
     "{host} cannot reach {peer}", "NCCL_SOCKET_IFNAME (docker0?), firewall; is the first rank still alive?", false,
     true},
    {"connection closed", "Connection closed by remote peer|Connection reset by peer",
     "{peer} closed its connection to {host}", "an effect: it died or exited; look for the first error of {peer}", true,
     true},
    {"networks differ", "wrong type 3 != 4|wrong type 4 != 3",  // NCCL's sockets for TCP and for InfiniBand
     "{host}: ranks use different networks, InfiniBand and TCP sockets",
     "what does each node say before `Using network`? the same adapters, plug-in and NCCL_NET on all"},
    {"stranger on the port", "wrong type|wrong magic|invalid magic", "{host}: something that is not this job connected",
     "a port scanner or a second job; NCCL 2.27 ignores strangers"},
    {"duplicate GPU", "Duplicate GPU detected|using the same GPU", "{host}: two ranks chose the same GPU",
     "cudaSetDevice(LOCAL_RANK), CUDA_VISIBLE_DEVICES, ranks per node"},
    {"/dev/shm too small", "failed to extend /dev/shm|Error while creating shared memory segment|posix_fallocate",
     "{host}: /dev/shm is too small", "docker --shm-size=1g --ulimit memlock=-1; Kubernetes: emptyDir with Memory"},
    {"shared memory not found", "Error while attaching to shared memory",
     "{host}: a shared memory segment of another rank is not visible",
     "RemoveIPC=no; one IPC namespace for all ranks; --cap-add SYS_NICE or NCCL_CUMEM_HOST_ENABLE=0"},
    {"out of GPU memory", "Cuda failure&out of memory", "{host}: no GPU memory is left for NCCL's buffers",
     "create communicators before the model; fewer channels (NCCL_MAX_NCHANNELS) or communicators"},
    {"Failed to bind NVLink SHARP",
     "Failed to bind NVLink SHARP|nvls&invalid argument|nvls&present state|nvls&not supported|"
     "system not yet initialized",
     "the fabric manager or the NVLink switches of {host} are not set up",
     "start nvidia-fabricmanager in the same version as the driver; NCCL_NVLS_ENABLE=0 runs without"},
    {"MNNVL not working", "MNNVL&not working|MNNVL&not supported|Cuda failure 800",
     "{host}: IMEX does not let it use multi-node NVLink",
     "nvidia-imex-ctl -N; IMEX channel devices in the container; NCCL_MNNVL_ENABLE=0 runs without"},
    {"P2P disabled", "P2P is disabled between NVLINK", "{host}: NVLink between two of its GPUs is out of order",
     "nvidia-smi nvlink -s; reset or replace the GPU"},
    {"no algorithm", "o algorithm/protocol available",
     "NCCL_ALGO or NCCL_PROTO excludes all algorithms of a collective",
     "name the collective: NCCL_ALGO=allreduce:tree"},
    {"no peer access", "open CUDA IPC handle|peer access is not supported",
     "{host}: two of its GPUs cannot reach each other's memory",
     "nvidia-smi topo -p2p r; one container for all ranks; IOMMU and ACS off; NCCL_P2P_DISABLE=1 runs without"},
    {"CUDA failure", "Cuda failure", "{host}: a CUDA call failed within NCCL",
     "the first CUDA error of that rank; Xid in the kernel log"},
}};

}  // namespace

const NcclWarningKind* nccl_warning_kind(std::string_view text) {
  const auto found = std::ranges::find_if(kinds, [&](const NcclWarningKind& kind) {
    return std::ranges::any_of(split(kind.pattern, '|'), [&](std::string_view parts) { return has_all(text, parts); });
  });
  return found == kinds.end() ? nullptr : &*found;
}

}  // namespace harness::evidence
