#pragma once

#include <exception>
#include <functional>
#include <vector>

namespace harness::test {

/// Runs work(rank) for all ranks at once, each on a thread of its own. Returns what each threw, by rank: a rank that
/// fails ends its own thread only.
std::vector<std::exception_ptr> on_ranks(int ranks, const std::function<void(int)>& work);

/// Throws the first of them, if there is any.
void rethrow_first(const std::vector<std::exception_ptr>& errors);

}  // namespace harness::test
