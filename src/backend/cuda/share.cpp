#include "backend/cuda/share.h"

#include <algorithm>

#include "program/beside.h"

namespace harness::cuda {
namespace {

// What computes beside the compute stream gets one in so many: 16 of an H100's 132. An estimate of what a kernel that
// only moves memory needs; it has not been measured.
constexpr int share_of_background = 8;

}  // namespace

std::vector<int> shares_of(const std::vector<program::Operation>& list, std::size_t streams, int multiprocessors) {
  const int background = std::max(1, multiprocessors / share_of_background);
  const std::vector<char> beside = program::computes_beside_another(list, streams);
  std::vector<int> shares(list.size(), 0);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (beside[i] != 0) shares[i] = list[i].stream == 0 ? multiprocessors - background : background;
  }
  return shares;
}

std::vector<Priority> priorities_of(const program::Program& program) {
  std::vector<Priority> priorities(program.streams.size(), Priority::normal);
  for (const program::Operation& op : program.step) {
    Priority& priority = priorities.at(op.stream);
    if (program::is_communication(op.action)) {
      priority = Priority::high;
    } else if (op.stream != 0 && priority != Priority::high) {
      priority = Priority::low;
    }
  }
  return priorities;
}

}  // namespace harness::cuda
