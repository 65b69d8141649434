#pragma once

#include "machine/conditions.h"

namespace harness::cuda {

/// Backend::measure_host_copies() of the calling thread's GPU. `seconds`: of the wall clock, a third for
/// each way. Throws Error if memory does not suffice; keeps none of it.
machine::HostCopies measure_host_copies(double seconds);

}  // namespace harness::cuda
