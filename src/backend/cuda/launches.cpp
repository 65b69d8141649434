#include <algorithm>
#include <map>
#include <utility>

#include "backend/cuda/cuda_backend.h"
#include "base/text.h"

namespace harness::cuda {
namespace {

// Whether another member of its fused group follows operation i on its stream.
bool goes_on(const std::vector<program::Operation>& operations, std::size_t i) {
  if (operations[i].fused_group < 0) return false;
  const auto next = std::find_if(operations.begin() + static_cast<std::ptrdiff_t>(i) + 1, operations.end(),
                                 [&](const program::Operation& op) { return op.stream == operations[i].stream; });
  return next != operations.end() && next->fused_group == operations[i].fused_group;
}

// Per other stream, the last operation that this one waits for; all earlier ones are then done.
std::map<program::StreamId, program::OperationId> last_waits(const std::vector<program::Operation>& operations,
                                                             const program::Operation& op) {
  std::map<program::StreamId, program::OperationId> last;
  for (const program::OperationId w : op.waits) {
    const program::StreamId other = operations[w].stream;
    if (other == op.stream) continue;
    program::OperationId& latest = last.try_emplace(other, w).first->second;
    latest = std::max(latest, w);
  }
  return last;
}

}  // namespace

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

LaunchList make_launches(const std::vector<program::Operation>& operations, std::size_t streams) {
  LaunchList list;
  std::vector<Launch> open(streams);  // by stream: the launch being collected
  std::vector<char> launched(operations.size(), 0);
  // [stream][other]: what the stream has already waited for
  std::vector<std::vector<program::OperationId>> passed(streams, std::vector<program::OperationId>(streams, -1));
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const program::StreamId stream = operations[i].stream;
    if (stream != 0) list.streams.insert(stream);
    for (const program::OperationId w : operations[i].waits) {
      if (operations[w].stream != stream) list.with_event.insert(w);
    }
    open[stream].members.push_back(static_cast<program::OperationId>(i));
    if (goes_on(operations, i)) continue;
    Launch launch = std::exchange(open[stream], {});
    launch.stream = stream;
    for (const program::OperationId member : launch.members) {
      for (const auto& [other, w] : last_waits(operations, operations[member])) {
        if (passed[stream][other] >= w) continue;
        if (launched[w] == 0) {
          fail("operation {} waits for operation {}, a part of a group that is not complete there", member, w);
        }
        passed[stream][other] = w;
        launch.waits.push_back(w);
      }
    }
    for (const program::OperationId member : launch.members) launched[member] = 1;
    list.launches.push_back(std::move(launch));
  }
  return list;
}

}  // namespace harness::cuda
