// Device and pinned memory: blocks with fences around them.
#pragma once

#include <cstddef>

namespace harness::fake {

enum class Place { device, pinned, pageable, broken };  // broken: reaches out of a block, or into a freed one

Place place(const void* address, std::size_t bytes);
int device_of(const void* address);  // -1: not device memory

}  // namespace harness::fake
