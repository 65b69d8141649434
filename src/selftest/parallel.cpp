#include "selftest/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace harness::selftest {

void for_each_chunk(std::int64_t count, int threads,
                    const std::function<void(std::int64_t chunk, std::int64_t first, std::int64_t last)>& work) {
  const std::int64_t chunks = chunks_of(count);
  std::atomic<std::int64_t> next{0};
  const auto take_chunks = [&] {
    for (std::int64_t c = next++; c < chunks; c = next++) {
      work(c, c * chunk_elements, std::min((c + 1) * chunk_elements, count));
    }
  };
  std::vector<std::thread> helpers;
  for (std::int64_t t = 1; t < std::min<std::int64_t>(threads, chunks); ++t) helpers.emplace_back(take_chunks);
  take_chunks();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace harness::selftest
