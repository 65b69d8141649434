#pragma once

namespace harness::doctor::docs {

// Where to read on about what checks find.

inline constexpr const char *kernel = "https://docs.kernel.org/admin-guide/",
                            *cpufreq = "https://docs.kernel.org/admin-guide/pm/cpufreq.html",
                            *cgroup = "https://docs.kernel.org/admin-guide/cgroup-v2.html",
                            *sysctl_kernel = "https://docs.kernel.org/admin-guide/sysctl/kernel.html",
                            *aer = "https://docs.kernel.org/PCI/pcieaer-howto.html",
                            *mpirun = "https://www.open-mpi.org/doc/current/man1/mpirun.1.php",
                            *nccl = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
                            *nccl_env = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
                            *gpudirect = "https://docs.nvidia.com/cuda/gpudirect-rdma/",
                            *gdrcopy = "https://github.com/NVIDIA/gdrcopy",
                            *ucx = "https://openucx.readthedocs.io/en/master/faq.html",
                            *set_mempolicy = "https://man7.org/linux/man-pages/man2/set_mempolicy.2.html",
                            *ofi = "https://github.com/aws/aws-ofi-nccl",
                            *ld_so = "https://man7.org/linux/man-pages/man8/ld.so.8.html",
                            *cuda = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/",
                            *nvml = "https://docs.nvidia.com/deploy/nvml-api/",
                            *xid = "https://docs.nvidia.com/deploy/xid-errors/",
                            *fabric = "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/",
                            *imex = "https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/";

}  // namespace harness::doctor::docs
