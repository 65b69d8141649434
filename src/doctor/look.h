#pragma once

#include "doctor/check.h"

/// The checks that need more than rules, as the table names them; each is described there.
namespace harness::doctor::look {

// gpu_checks.cpp
LookAt gpu_count, gpu_driver, gpu_nvml, gpu_temperature, gpu_xid, gpu_nvlink, gpu_fabric_manager, gpu_nvlink_domain,
    gpu_sxid, gdr_module, gdr_gdrcopy;
// port_checks.cpp
LookAt ib_state, ib_rate, ib_layer, ib_gid, ib_mtu, ib_errors, ib_pcie, ib_flaps;
// pcie_checks.cpp
LookAt pcie_width, pcie_speed, pcie_acs, pcie_iommu, gpu_bar1, topo_nearest;
// host_checks.cpp
LookAt rank_gpus, rank_memlock, rank_nofile, rank_shm, rank_near_gpu, rank_memory_policy, node_answers, cpu_governor,
    cpu_load, cpu_steal, mem_swap;
// nccl_file_checks.cpp
LookAt nccl_library, nccl_plugin_file, nccl_sharp, mpi_devices;
// setting_checks.cpp
LookAt env_names, env_values, env_debugging, env_combinations, env_without_effect, env_devices, env_files, env_ranks,
    env_file;

}  // namespace harness::doctor::look
