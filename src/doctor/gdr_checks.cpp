// What GPUDirect RDMA stands on: adapters that read and write the GPUs' memory.
#include <charconv>
#include <cstdint>

#include "base/error.h"
#include "doctor/check.h"
#include "doctor/docs.h"

namespace harness::doctor {
namespace {

// What the kernel has for dma-buf of RDMA: since 5.12.
bool kernel_has_dmabuf(const std::string& release) {
  int major = 0, minor = 0;
  const auto [end, error] = std::from_chars(release.data(), release.data() + release.size(), major);
  if (error != std::errc() || end == release.data() + release.size()) return false;
  std::from_chars(end + 1, release.data() + release.size(), minor);
  return major > 5 || (major == 5 && minor >= 12);
}

// Whether dma-buf can give adapters the GPUs' memory; `why_not`, or why it is not known.
enum class Known : std::uint8_t { yes, no, unknown };
Known dmabuf(const Facts& facts, std::string& why_not) {
  const machine::Reading& kind = facts["driver/open"];
  if (!kind.ok()) {
    const machine::Reading& version = facts["driver/version"];
    why_not = version.why.empty() ? "no /proc/driver/nvidia/version" : version.why;
    return Known::unknown;
  }
  const machine::Reading &kernel = facts["os/kernel"], &option = facts.peek("kernel/dmabuf");
  if (!kernel.ok()) {
    why_not = kernel.why.empty() ? "the kernel does not tell its version" : kernel.why;
    return Known::unknown;
  }
  if (kind.text != "yes") {
    why_not = "NVIDIA's closed kernel modules have none";
  } else if (!kernel_has_dmabuf(kernel.text)) {
    why_not = fmt::format("kernel {} is older than 5.12", kernel.text);
  } else if (option.text == "no") {
    why_not = "the kernel was built without CONFIG_DMA_SHARED_BUFFER";
  }
  return why_not.empty() ? Known::yes : Known::no;
}

// True, and said, where there are no GPUs and adapters that GPUDirect RDMA could be for.
bool no_gpu_direct(const Node& node, Findings& out) {
  const std::vector<std::string> gpus = gpus_of(node.facts);
  if (gpus.empty() && !node.facts.any("driver/gpu")) {
    out.skip("no NVIDIA GPU");
  } else if (no_ports(node, out)) {
    return true;
  } else if (!gpus.empty() && is_geforce(gpu_model(node.facts, gpus.front()))) {
    out.skip("GeForce has no GPUDirect RDMA");
  }
  return !out.empty();
}

void any_way(const Node& node, const Cluster&, Findings& out) {
  if (no_gpu_direct(node, out)) return;
  if (node.facts.has("driver/peermem")) return out.pass(node.facts.text("driver/peermem"));
  std::string why;
  const Known known = dmabuf(node.facts, why);
  if (known == Known::yes) return out.pass("dma-buf, by the open driver");
  if (known == Known::unknown) return out.unknown("whether adapters reach the GPUs' memory by dma-buf", why);
  out.fail("neither nvidia_peermem nor dma-buf: what GPUs send to other nodes goes through the host's memory",
           "`modprobe nvidia_peermem`, or the open kernel modules of the driver with a kernel from 5.12 on");
}

void by_dmabuf(const Node& node, const Cluster&, Findings& out) {
  if (no_gpu_direct(node, out)) return;
  std::string why;
  switch (dmabuf(node.facts, why)) {
    case Known::yes:
      return out.pass("the open driver and the kernel have it");
    case Known::unknown:
      return out.unknown("whether there is dma-buf", why);
    case Known::no:
      break;
  }
  if (!node.facts.has("driver/peermem")) return out.skip("no: see gdr.module");
  out.info("GPUDirect RDMA goes by nvidia_peermem and not by dma-buf, which NVIDIA recommends: " + why,
           "the open kernel modules of the driver, with a kernel from 5.12 on");
}

void gdrcopy(const Node& node, const Cluster&, Findings& out) {
  if (!has_gpus(node.facts)) return out.skip("no NVIDIA GPU");
  const machine::Reading& reading = node.facts["driver/gdrcopy"];
  const bool wanted = setting_of(node, "NCCL_GDRCOPY_ENABLE") == "1";
  if (reading.text == "yes") return out.pass("gdrdrv");
  const std::string remedy = "load gdrdrv and make /dev/gdrdrv (with --device in a container), or unset the variable";
  if (reading.access == machine::Access::unreadable) return out.unknown("the module gdrdrv", reading.why);
  if (wanted) return out.warn("NCCL_GDRCOPY_ENABLE=1, but GDRCopy's module or device is not there", remedy);
  out.skip("there is no GDRCopy, and NCCL does not need it");
}

void relaxed_ordering(const Node& node, const Cluster&, Findings& out) {
  if (!is_virtual(node.facts)) return out.skip("only virtual machines need it");
  if (no_active_ports(node, out)) return;
  const machine::Reading& reading = node.facts["driver/relaxed_ordering"];
  if (out.nothing_in(reading, "the driver's parameters", "the driver does not tell")) return;
  if (reading.text != "0") return out.pass("on");
  out.warn("relaxed ordering of PCIe is off in a virtual machine: RDMA from GPUs is slow",
           "options nvidia NVreg_EnablePCIERelaxedOrderingMode=1");
}

}  // namespace

std::vector<Check> gdr_checks() {
  return {{"gdr.module", "can adapters reach the GPUs' memory: peermem or dma-buf",
           "/sys/module/nvidia_peermem, /sys/kernel/mm/memory_peers, /proc/driver/nvidia/version", docs::gpudirect,
           any_way},
          {"gdr.dmabuf", "can adapters reach the GPUs' memory by dma-buf, the recommended way",
           "/proc/driver/nvidia/version, /proc/sys/kernel/osrelease, /boot/config-*", docs::gpudirect, by_dmabuf},
          {"gdr.gdrcopy", "is GDRCopy there, if it is asked for",
           "/sys/module/gdrdrv, /dev/gdrdrv, the environment of each rank", docs::gdrcopy, gdrcopy},
          {"gdr.relaxed", "may PCIe reorder writes, in a virtual machine", "/proc/driver/nvidia/params",
           docs::gpudirect, relaxed_ordering}};
}

}  // namespace harness::doctor
