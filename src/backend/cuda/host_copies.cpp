#include "backend/cuda/host_copies.h"

#include "backend/cuda/timer.h"

namespace harness::cuda {
namespace {

constexpr std::int64_t copy_bytes = 64 << 20;  // so much that starting a copy takes no notable part of it

// The memory that a copy in one direction reads and writes. The driver takes the host's part from the NUMA node that
// the worker is bound to.
struct Buffers {
  Memory host{Memory::Kind::pinned, copy_bytes, "copies between host and GPU"},
      device{Memory::Kind::device, copy_bytes, "copies between host and GPU"};
};

}  // namespace

machine::HostCopies measure_host_copies(double seconds) {
  const Buffers in, out;
  Timer timer;
  const OwnedStream other(Priority::normal);
  const OwnedEvent begun(OwnedEvent::Timing::off), ended(OwnedEvent::Timing::off);
  const auto to_device = [&](Stream s) { copy_in(s, in.device.data(), in.host.data(), copy_bytes); };
  const auto from_device = [&](Stream s) { copy_out(s, out.host.data(), out.device.data(), copy_bytes); };
  const auto both = [&](Stream s) {
    begun.record(s);
    wait_for(other.get(), begun.get());
    to_device(s);
    from_device(other.get());
    ended.record(other.get());
    wait_for(s, ended.get());
  };
  constexpr auto bytes = static_cast<double>(copy_bytes);
  machine::HostCopies rates;
  rates.to_device_bytes_per_s = bytes / timer.sustained({to_device}, seconds / 3);
  rates.from_device_bytes_per_s = bytes / timer.sustained({from_device}, seconds / 3);
  rates.both_bytes_per_s = 2 * bytes / timer.sustained({both}, seconds / 3);
  return rates;
}

}  // namespace harness::cuda
