#pragma once

#include <cstdint>
#include <functional>

namespace harness::selftest {

inline constexpr std::int64_t chunk_elements = 1 << 16;  // some hundred microseconds of work
inline std::int64_t chunks_of(std::int64_t count) {
  return (count + chunk_elements - 1) / chunk_elements;
}

/// Calls work(chunk, first, last) for every chunk of [0, count), on at most `threads` threads. What belongs to which
/// chunk depends on nothing else, so results joined in the order of chunks are the same for any number of threads.
/// `work` must not throw.
void for_each_chunk(std::int64_t count, int threads,
                    const std::function<void(std::int64_t chunk, std::int64_t first, std::int64_t last)>& work);

}  // namespace harness::selftest
