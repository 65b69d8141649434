#include "support/ranks.h"

#include <thread>

namespace harness::test {

std::vector<std::exception_ptr> on_ranks(int ranks, const std::function<void(int)>& work) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&work, rank, &error = errors[static_cast<std::size_t>(rank)]] {
      try {
        work(rank);
      } catch (...) {
        error = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return errors;
}

void rethrow_first(const std::vector<std::exception_ptr>& errors) {
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace harness::test
